package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// program is a binary of this host that needs libraries; the test is skipped
// where there is none.
func program(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"/usr/bin/ls", "/bin/ls"} {
		path, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		if b, err := inspect(path); err == nil && len(b.libraries) > 0 {
			return path
		}
	}
	t.Skip("no dynamic binary at hand")
	return ""
}

func TestImage(t *testing.T) {
	dir := t.TempDir()
	authorities := filepath.Join(dir, "authorities.pem")
	if err := os.WriteFile(authorities, []byte("PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := program(t)
	args := []string{"--name", "example.com/gatehouse:dev", "--authorities", authorities, "--labels", "a=b,c=d", "--versions", filepath.Base(other) + "=9.4"}
	var archives, lists [2][]byte
	for i := range archives {
		// Elsewhere, at another time, by somebody with another umask.
		binaries := []string{copyTo(t, self), copyTo(t, other)}
		output, sbom := filepath.Join(dir, "image.tar"), filepath.Join(dir, "image.spdx.json")
		if err := run(t.Context(), append(slices.Clone(args), append([]string{"--output", output, "--sbom", sbom}, binaries...)...)); err != nil {
			t.Fatal(err)
		}
		for path, into := range map[string]*[]byte{output: &archives[i], sbom: &lists[i]} {
			if *into, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(archives[0], archives[1]) || !slices.Equal(lists[0], lists[1]) {
		t.Error("the same input gave another archive, or another list of what is in it")
	}
	checkBill(t, lists[0], filepath.Base(self), filepath.Base(other))

	tag, err := name.NewTag("example.com/gatehouse:dev")
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(filepath.Join(dir, "image.tar"), &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := config.Config.Entrypoint, []string{"/usr/local/bin/" + filepath.Base(self)}; !slices.Equal(got, want) {
		t.Errorf("entrypoint %q, want %q", got, want)
	}
	if config.Config.User != nonroot || config.Config.Labels["c"] != "d" {
		t.Errorf("user %q, labels %v", config.Config.User, config.Config.Labels)
	}
	files := filesOf(t, image)
	b, err := inspect(other)
	if err != nil {
		t.Fatal(err)
	}
	wanted := append([]string{"/usr/local/bin/" + filepath.Base(self), "/usr/local/bin/" + filepath.Base(other), "/etc/passwd"}, b.libraries...)
	for _, path := range wanted {
		if f := files[path]; f == nil || f.Mode&0o444 != 0o444 || f.Size == 0 {
			t.Errorf("%s: %+v, want a file that everybody may read", path, f)
		}
	}
	if f := files["/tmp"]; f == nil || f.Mode&0o7777 != 0o1777 {
		t.Errorf("/tmp: %+v, want mode 1777", f)
	}
	if f := files["/etc/ssl/certs/ca-certificates.crt"]; f == nil || f.Size != 3 {
		t.Errorf("authorities: %+v, want those of the flag", f)
	}
	for path, f := range files {
		if f.Uid != 0 || f.Gid != 0 || f.ModTime.Unix() != 0 {
			t.Errorf("%s: owner %d:%d, time %v: something of this host got in", path, f.Uid, f.Gid, f.ModTime)
		}
	}
}

func filesOf(t *testing.T, image v1.Image) map[string]*tar.Header {
	t.Helper()
	all := mutate.Extract(image)
	defer func() { _ = all.Close() }()
	files := map[string]*tar.Header{}
	for r := tar.NewReader(all); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files["/"+strings.TrimSuffix(header.Name, "/")] = header
	}
}

// copyTo copies a program into a directory of its own.
func copyTo(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(out, data, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return out
}

// checkBill checks that everything in the image is listed, with what a scanner knows it by.
func checkBill(t *testing.T, text []byte, own, other string) {
	t.Helper()
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	files, packages := map[string]string{}, map[string]component{}
	ids := map[string]bool{d.ID: true}
	for _, f := range d.Files {
		files[f.Name] = f.Checksums[1].Value
		ids[f.ID] = true
	}
	for _, p := range d.Packages {
		packages[p.Name] = p
		ids[p.ID] = true
	}
	for _, path := range []string{bin + own, bin + other, "/etc/passwd", "/etc/ssl/certs/ca-certificates.crt"} {
		if len(files[path]) != 64 {
			t.Errorf("%s is not listed with its SHA-256", path)
		}
	}
	if p := packages[other]; p.Version != "9.4" {
		t.Errorf("%s is listed as %+v", other, p)
	}
	for name, locator := range map[string]string{"stdlib": "pkg:golang/stdlib@1.", "github.com/google/go-containerregistry": "pkg:golang/github.com/google/go-containerregistry@v0."} {
		if p := packages[name]; len(p.Refs) != 1 || !strings.HasPrefix(p.Refs[0].Locator, locator) {
			t.Errorf("%s is listed as %+v", name, p)
		}
	}
	if _, err := os.Stat("/var/lib/dpkg/status"); err == nil && packages["libc6"].Version == "" {
		t.Error("libc6 is not listed")
	}
	if len(ids) != 1+len(d.Files)+len(d.Packages) {
		t.Error("two things have one ID")
	}
	for _, r := range d.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("%+v is about something that is not there", r)
		}
	}
}

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reference := strings.TrimPrefix(server.URL, "http://") + "/gatehouse:dev"
	if err := run(t.Context(), []string{"--name", reference, "--authorities=", "--push", self}); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	if files := filesOf(t, image); files["/usr/local/bin/"+filepath.Base(self)] == nil {
		t.Errorf("the registry has %v", files)
	}
}

// A file that is no program, an unknown name and a missing file are told apart
// before anything is written.
func TestRefusals(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("text, no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "image.tar")
	for want, args := range map[string][]string{
		"text: bad magic number":   {"--name", "a:b", text},
		"missing: open":            {"--name", "a:b", "missing"},
		"can only contain":         {"--name", "A B", self},
		"want name=value":          {"--name", "a:b", "--labels", "x", self},
		"certificate authorities":  {"--name", "a:b", "--authorities", "missing", self},
		"flag: help requested":     {"--name", "a:b"},
		"provided but not defined": {"--nothing"},
	} {
		args = append([]string{"--output", output}, args...)
		if err := run(context.Background(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	if _, err := os.Stat(output); err == nil {
		t.Error("an archive was written")
	}
}
