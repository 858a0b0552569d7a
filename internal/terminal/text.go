package terminal

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes a text fit for one line of a terminal: what files and Envoy say may
// hold line breaks and control codes.
func Clean(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text))
}

// visible returns a text's width on a terminal, colour codes left out.
func visible(text string) int {
	n, in := 0, false
	for _, r := range text {
		switch {
		case r == '\x1b':
			in = true
		case in:
			in = r != 'm'
		default:
			n++
		}
	}
	return n
}

// plain returns a text without its colour codes.
func plain(text string) string {
	if !strings.Contains(text, "\x1b") {
		return text
	}
	in := false
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\x1b':
			in = true
		case in:
			in = r != 'm'
		default:
			return r
		}
		return -1
	}, text)
}

// clip cuts a text to a width. Colour codes do not count, and a colour that was
// switched on is switched off.
func clip(text string, width int) string {
	if visible(text) <= width {
		return text
	}
	n, in, colour := 0, false, false
	for i, r := range text {
		switch {
		case r == '\x1b':
			in, colour = true, true
		case in:
			in = r != 'm'
		default:
			if n++; n >= width {
				out := text[:i] + "…"
				if colour {
					out += reset
				}
				return out
			}
		}
	}
	return text
}

// wrap breaks a plain text into lines of at most width characters, at spaces
// where there are any; following lines are indented by hang.
func wrap(text string, width, hang int) []string {
	width = max(width, hang+8)
	var lines []string
	line, n := "", 0
	indent := strings.Repeat(" ", hang)
	flush := func() {
		lines = append(lines, strings.TrimRight(line, " "))
		line, n = indent, hang
	}
	empty := true
	for word := range strings.FieldsSeq(text) {
		size := utf8.RuneCountInString(word)
		if !empty && n+1+size > width {
			flush()
			empty = true
		}
		if !empty {
			line, n = line+" ", n+1
		}
		for n+size > width { // longer than a line: a path, a hash
			runes := []rune(word)
			line += string(runes[:width-n])
			word = string(runes[width-n:])
			size = utf8.RuneCountInString(word)
			flush()
		}
		line, n, empty = line+word, n+size, false
	}
	if !empty || len(lines) == 0 {
		flush()
	}
	return lines
}

// plural returns "1 route" or "3 routes".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
