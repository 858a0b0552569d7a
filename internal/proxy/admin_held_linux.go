package proxy

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openSocket returns a reference to a socket's file: one can't read from it, but
// connect to the socket by it (see socketPath).
func openSocket(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// socketPath is a path that leads to the file wherever its own has gone.
func socketPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
