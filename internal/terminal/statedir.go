package terminal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// AdminSocket is the name of the Unix socket in a state directory that serves
// the admin interface.
const AdminSocket = "admin.sock"

// AdminAddress is the name of the file in a state directory that holds the TCP
// address of the admin interface.
const AdminAddress = "admin.addr"

// ErrInUse says that another process runs with the same state directory.
var ErrInUse = errors.New("in use by another gatehouse")

// stateBase is where state directories live unless --state-dir says otherwise:
// private to the user and gone after a reboot, as are the processes.
func stateBase() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "gatehouse")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("gatehouse-%d", os.Getuid()))
}

// DefaultStateDir returns the state directory for a set of paths: the same
// paths find the same directory, and with it the Envoys of an earlier run.
func DefaultStateDir(paths []string) (string, error) {
	h := sha256.New()
	for _, p := range paths {
		if p != "-" {
			abs, err := filepath.Abs(p)
			if err != nil {
				return "", err
			}
			p = abs
		}
		fmt.Fprintf(h, "%s\x00", p)
	}
	return filepath.Join(stateBase(), hex.EncodeToString(h.Sum(nil)[:5])), nil
}

// OpenStateDir creates a state directory, private to the user, and locks it. The
// lock ends with the process or with a call of release.
func OpenStateDir(dir string) (release func(), err error) {
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("state directory: %w", err)
		}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(st.Uid) != os.Getuid() {
		return nil, fmt.Errorf("state directory %s is not a directory of this user; name another one with --state-dir", dir)
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory needs its execute bit
		return nil, fmt.Errorf("state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("state directory %s: %w: stop it, or give this run a directory of its own with --state-dir", dir, ErrInUse)
	}
	return func() { _ = f.Close() }, nil
}

// Running returns the state directories with a process that answers.
func Running() []string {
	found, _ := filepath.Glob(filepath.Join(stateBase(), "*", AdminSocket))
	var dirs []string
	for _, socket := range found {
		if conn, err := net.Dial("unix", socket); err == nil {
			_ = conn.Close()
			dirs = append(dirs, filepath.Dir(socket))
		}
	}
	return dirs
}

// ErrNotRunning says that there is no running process to be found.
var ErrNotRunning = errors.New("no running gatehouse found: start one with `gatehouse run DIR`, name its --state-dir, evaluate files with --once DIR, or ask a cluster with -A")

// FindRunning returns the state directory of the one running process, or an
// error that says what to do.
func FindRunning() (string, error) {
	switch dirs := Running(); len(dirs) {
	case 0:
		return "", ErrNotRunning
	case 1:
		return dirs[0], nil
	default:
		return "", fmt.Errorf("several gatehouse processes run; choose one with --state-dir:\n  %s", strings.Join(dirs, "\n  "))
	}
}
