package terminal

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// terminalMode changes what a terminal does with what is typed: nothing appears in the
// middle of the screen, Ctrl-C among it, and keys are read one by one. Ctrl-C, Ctrl-Z and
// Ctrl-S go on doing what they do in the user's own mode.
type terminalMode struct {
	fd   int
	keys bool // they are read, not only hidden

	mu     sync.Mutex
	before *unix.Termios // the user's; nil where it is in force, and where there is no terminal
}

func newMode(in *os.File, keys bool) *terminalMode {
	return &terminalMode{fd: int(in.Fd()), keys: keys}
}

// apply puts the screen's mode in force until restore. It reports whether there is a terminal.
func (m *terminalMode) apply() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.before == nil {
		before, err := unix.IoctlGetTermios(m.fd, getMode)
		if err != nil {
			return false
		}
		m.before = before
	}
	silent := *m.before
	silent.Lflag &^= unix.ECHO
	if m.keys {
		silent.Lflag &^= unix.ICANON | unix.IEXTEN
		silent.Cc[unix.VMIN], silent.Cc[unix.VTIME] = 0, 0 // a read never waits
	}
	_ = unix.IoctlSetTermios(m.fd, setMode, &silent) // it only looks worse
	return true
}

// unblock lets output go on that Ctrl-S has stopped, so that the terminal can be given back.
func (m *terminalMode) unblock() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.before == nil {
		return
	}
	mode, err := unix.IoctlGetTermios(m.fd, getMode)
	if err != nil {
		return
	}
	mode.Iflag &^= unix.IXON // Linux and BSD go on when this is taken away
	_ = unix.IoctlSetTermios(m.fd, setMode, mode)
}

// restore puts the user's mode back.
func (m *terminalMode) restore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.before != nil {
		_ = unix.IoctlSetTermios(m.fd, setMode, m.before)
		m.before = nil
	}
}

// foreground reports whether the terminal is this process's to use. A job in the background
// that reads from it, or changes its mode, is stopped.
func foreground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
