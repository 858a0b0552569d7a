package main

import (
	"archive/tar"
	"context"
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
	args := []string{"--name", "example.com/gatehouse:dev", "--authorities", authorities, "--labels", "a=b,c=d"}
	var archives [2][]byte
	for i := range archives {
		output := filepath.Join(dir, "image.tar")
		if err := run(t.Context(), append(slices.Clone(args), "--output", output, self, other)); err != nil {
			t.Fatal(err)
		}
		if archives[i], err = os.ReadFile(output); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(archives[0], archives[1]) {
		t.Error("the same input gave another archive")
	}

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
	files := contents(t, image)
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

func contents(t *testing.T, image v1.Image) map[string]*tar.Header {
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
	if files := contents(t, image); files["/usr/local/bin/"+filepath.Base(self)] == nil {
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
