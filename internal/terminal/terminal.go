package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalMode turns the echo of a terminal off, so that what is typed, Ctrl-C
// among it, does not appear in the middle of the screen.
type terminalMode struct {
	fd     int
	before *unix.Termios // nil where there is no terminal
}

// silence turns the echo off until restore.
func silence(in *os.File) *terminalMode {
	m := &terminalMode{fd: int(in.Fd())}
	m.apply()
	return m
}

func (m *terminalMode) apply() {
	before, err := unix.IoctlGetTermios(m.fd, getMode)
	if err != nil {
		return
	}
	m.before = before
	silent := *before
	silent.Lflag &^= unix.ECHO
	_ = unix.IoctlSetTermios(m.fd, setMode, &silent) // it only looks worse
}

func (m *terminalMode) restore() {
	if m.before != nil {
		_ = unix.IoctlSetTermios(m.fd, setMode, m.before)
	}
}
