package terminal

import (
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const reset = "\x1b[0m"

// Style decides about colour. The zero Style has none.
type Style struct{ color bool }

// StyleFor returns the style for a writer: colour on a terminal that knows it,
// unless NO_COLOR is set.
func StyleFor(w io.Writer) Style {
	f, ok := w.(*os.File)
	return Style{color: ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))}
}

// Interactive reports whether a live screen can be shown: both outputs are the
// terminal, it can move its cursor, and it is ours: a job in the background must
// not paint over what its user does meanwhile.
func Interactive(out, errors *os.File) bool {
	if t := os.Getenv("TERM"); t == "" || t == "dumb" || !term.IsTerminal(int(out.Fd())) || !term.IsTerminal(int(errors.Fd())) {
		return false
	}
	group, err := unix.IoctlGetInt(int(out.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// terminalWidth returns the width of the terminal behind a writer; 0 if it is
// none.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

func (s Style) paint(code, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + reset
}

func (s Style) bold(text string) string   { return s.paint("1", text) }
func (s Style) dim(text string) string    { return s.paint("2", text) }
func (s Style) green(text string) string  { return s.paint("32", text) }
func (s Style) yellow(text string) string { return s.paint("33", text) }
func (s Style) red(text string) string    { return s.paint("31", text) }

// cleaned makes a cell fit for one line of a terminal: what it says, in the colour that
// paint gave it as a whole.
func (s Style) cleaned(cell string) string {
	code, text, painted := strings.Cut(cell, "m")
	if s.color && painted && strings.HasPrefix(code, "\x1b[") && strings.HasSuffix(text, reset) {
		return code + "m" + Clean(strings.TrimSuffix(text, reset)) + reset
	}
	return Clean(cell)
}

// state paints the word for an object's state.
func (s Style) state(word string, ok bool) string {
	switch {
	case word == stateStopped:
		return s.dim(word)
	case ok:
		return s.green(word)
	case word == statePending:
		return s.yellow(word)
	}
	return s.red(word)
}

// The states that have a colour of their own.
const (
	statePending = "Pending"
	stateStopped = "Stopped"
)
