package cluster

import (
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// inNetwork runs f in another network namespace. Sockets that f makes and
// processes that it starts stay there. Only its own thread goes, so f must make
// them itself, not in a goroutine.
func inNetwork(path string, f func() error) error {
	there, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = there.Close() }()
	// A thread that could not come back ends with its goroutine.
	result := make(chan error)
	go func() {
		result <- func() error {
			runtime.LockOSThread()
			here, err := os.Open("/proc/thread-self/ns/net")
			if err != nil {
				return err
			}
			defer func() { _ = here.Close() }()
			if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
				return os.NewSyscallError("setns", err)
			}
			err = f()
			if unix.Setns(int(here.Fd()), unix.CLONE_NEWNET) == nil {
				runtime.UnlockOSThread()
			}
			return err
		}()
	}()
	return <-result
}

// Lock takes the lock that a node's first process holds while it lives. The
// result is nil if another one holds it.
func Lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if err == unix.EWOULDBLOCK {
			return nil, nil
		}
		return nil, os.NewSyscallError("flock", err)
	}
	return f, nil
}

func locked(dir string) bool {
	f, err := Lock(dir)
	if f != nil {
		_ = f.Close()
	}
	return err == nil && f == nil
}
