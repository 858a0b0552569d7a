//go:build !linux

package proxy

import (
	"errors"
	"os"
)

// openSocket has no way to refer to a socket but by its path.
func openSocket(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func socketPath(f *os.File) string { return f.Name() }
