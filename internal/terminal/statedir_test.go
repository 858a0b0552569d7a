package terminal

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nobody is a user that isn't the one who runs the tests.
const nobody = 65534

// TestStateDirIsTrusted protects a user from others who can write to a directory above
// the state directory: they would put their own socket in the place of ours, and so
// configure our Envoy.
func TestStateDirIsTrusted(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(base string) error
		root    bool // can be prepared by root only
		bad     string
	}{
		"nothing is there": {prepare: func(string) error { return nil }},
		"sticky":           {prepare: func(base string) error { return mode(base, 0o777|os.ModeSticky) }},
		"others may write": {prepare: func(base string) error { return mode(base, 0o777) }, bad: "may write"},
		"others may write higher up": {prepare: func(base string) error {
			return errors.Join(os.Mkdir(filepath.Join(base, "parent"), 0o700), mode(base, 0o707))
		}, bad: "may write"},
		"parent of another": {root: true, prepare: func(base string) error {
			return errors.Join(mode(base, 0o777|os.ModeSticky), os.Mkdir(filepath.Join(base, "parent"), 0o755), os.Chown(filepath.Join(base, "parent"), nobody, nobody))
		}, bad: "belongs to user id 65534"},
		"sticky of another": {root: true, prepare: func(base string) error {
			return errors.Join(mode(base, 0o777|os.ModeSticky), os.Chown(base, nobody, nobody))
		}, bad: "belongs to user id 65534"},
		"own link": {prepare: func(base string) error { return os.Symlink(t.TempDir(), filepath.Join(base, "parent")) }},
		"link out of it": {prepare: func(base string) error {
			open := filepath.Join(base, "open")
			return errors.Join(os.Mkdir(open, 0o700), os.Mkdir(filepath.Join(open, "x"), 0o700), mode(open, 0o777),
				os.Symlink(filepath.Join(open, "x"), filepath.Join(base, "parent")))
		}, bad: "may write"},
		"link of another": {root: true, prepare: func(base string) error {
			link := filepath.Join(base, "parent")
			return errors.Join(mode(base, 0o777|os.ModeSticky), os.Symlink(t.TempDir(), link), os.Lchown(link, nobody, nobody))
		}, bad: "belongs to user id 65534"},
		"links in a ring": {prepare: func(base string) error {
			return errors.Join(os.Symlink("b", filepath.Join(base, "parent")), os.Symlink("parent", filepath.Join(base, "b")))
		}, bad: "too many levels"},
		"state of another": {root: true, prepare: func(base string) error {
			dir := filepath.Join(base, "parent", "state")
			return errors.Join(os.MkdirAll(dir, 0o700), os.Chown(dir, nobody, nobody))
		}, bad: "belongs to user id 65534"},
		"lock that leads elsewhere": {prepare: func(base string) error {
			dir := filepath.Join(base, "parent", "state")
			return errors.Join(os.MkdirAll(dir, 0o700), os.Symlink("/etc/passwd", filepath.Join(dir, "lock")))
		}, bad: "too many levels"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root && os.Geteuid() != 0 {
				t.Skip("needs root")
			}
			base := t.TempDir()
			if err := c.prepare(base); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(base, "parent", "state")
			path, release, err := OpenStateDir(dir)
			switch {
			case err == nil && c.bad != "":
				t.Errorf("%s was opened", path)
			case err != nil && (c.bad == "" || !strings.Contains(err.Error(), c.bad)):
				t.Errorf("%v, want %q", err, c.bad)
			}
			if err != nil {
				return
			}
			defer release()
			if info, err := os.Lstat(path); err != nil || info.Mode() != os.ModeDir|0o700 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			if _, _, err := OpenStateDir(dir); !errors.Is(err, ErrInUse) {
				t.Errorf("it can be opened twice: %v", err)
			}
		})
	}
}

func mode(path string, m os.FileMode) error { return os.Chmod(path, m) } //nolint:gosec // what is to be refused

// TestRunningIsTrusted protects those who ask for the status from answers of others.
func TestRunningIsTrusted(t *testing.T) {
	base, err := os.MkdirTemp("", "gh") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	t.Setenv("XDG_RUNTIME_DIR", base)
	dir := filepath.Join(base, "gatehouse", "one")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, AdminSocket))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if got := Running(); len(got) != 1 || got[0] != dir {
		t.Errorf("found %q, want %s", got, dir)
	}
	if err := mode(filepath.Dir(dir), 0o777); err != nil {
		t.Fatal(err)
	}
	if got := Running(); len(got) != 0 {
		t.Errorf("found %q where others can write", got)
	}
}
