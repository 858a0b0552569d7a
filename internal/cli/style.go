package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Style decides about colour.
type Style struct{ color bool }

// StyleFor returns the style for a writer: colour on a terminal, unless NO_COLOR
// is set.
func StyleFor(w io.Writer) Style {
	f, ok := w.(*os.File)
	return Style{color: ok && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))}
}

func (s Style) paint(code, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s Style) bold(text string) string   { return s.paint("1", text) }
func (s Style) dim(text string) string    { return s.paint("2", text) }
func (s Style) green(text string) string  { return s.paint("32", text) }
func (s Style) yellow(text string) string { return s.paint("33", text) }
func (s Style) red(text string) string    { return s.paint("31", text) }
