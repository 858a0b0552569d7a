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

// OpenStateDir creates a state directory, private to the user, and locks it. What runs as
// the user follows from what is there, so nobody else may be able to replace it or any
// directory above it. The path that is returned has no symbolic links. The lock ends with
// the process or with a call of release.
func OpenStateDir(dir string) (path string, release func(), err error) {
	down := descent{create: true}
	d, path, err := down.trusted(dir)
	if err != nil {
		return "", nil, fmt.Errorf("state directory: %w", err)
	}
	defer d.Close()
	info, err := d.Stat()
	if err != nil {
		return "", nil, fmt.Errorf("state directory: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return "", nil, fmt.Errorf("state directory %s is not a directory of this user; name another one with --state-dir", dir)
	}
	if err := d.Chmod(0o700); err != nil {
		return "", nil, fmt.Errorf("state directory: %w", err)
	}
	fd, err := unix.Openat(int(d.Fd()), "lock", unix.O_CREAT|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("state directory: %w", &os.PathError{Op: "open", Path: filepath.Join(path, "lock"), Err: err})
	}
	f := os.NewFile(uintptr(fd), filepath.Join(path, "lock"))
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return "", nil, fmt.Errorf("state directory %s: %w: stop it, or give this run a directory of its own with --state-dir", dir, ErrInUse)
	}
	return path, func() { _ = f.Close() }, nil
}

// Running returns the state directories with a process that answers. Those that others
// can write to are none: who answers there is not known.
func Running() []string {
	found, _ := filepath.Glob(filepath.Join(stateBase(), "*", AdminSocket))
	var dirs []string
	for _, socket := range found {
		var down descent
		d, _, err := down.trusted(filepath.Dir(socket))
		if err != nil {
			continue
		}
		_ = d.Close()
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
