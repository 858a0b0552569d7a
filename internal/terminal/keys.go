package terminal

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// key is a key that a person presses: a character, or one of those below.
type key rune

// The keys that are no characters.
const (
	keyNone key = -1 - iota // one that the screen has no use for
	keyUp
	keyDown
	keyPageUp
	keyPageDown
	keyHome
	keyEnd
	keyEnter
	keyEscape
	keyErase  // Backspace
	keyClear  // Ctrl-U
	keyRedraw // Ctrl-L
)

// keystroke is a key, pressed by a person or part of a text that was pasted.
type keystroke struct {
	key    key
	pasted bool
}

// What a terminal puts around a text that is pasted. It does so if asked to, so that no
// letter of the text is taken for a command.
const (
	pasteBegin = "200~"
	pasteEnd   = "201~"
)

// decoder turns what a terminal sends into keys.
type decoder struct {
	rest    []byte // the first bytes of a key, of which the others have not come yet
	pasting bool
}

// longestSequence bounds what is kept of a sequence without an end.
const longestSequence = 32

// feed takes in bytes and returns the keys that are whole.
func (d *decoder) feed(input []byte) []keystroke {
	d.rest = append(d.rest, input...)
	var out []keystroke
	for len(d.rest) > 0 {
		k, n := d.next(d.rest)
		if n == 0 {
			break
		}
		d.rest = d.rest[n:]
		if k != keyNone {
			out = append(out, keystroke{k, d.pasting})
		}
	}
	d.rest = bytes.Clone(d.rest)
	return out
}

// waits reports whether a key has begun and not ended.
func (d *decoder) waits() bool { return len(d.rest) > 0 }

// flush ends a key of which nothing more has come: Escape sends what the sequences of other
// keys begin with.
func (d *decoder) flush() []keystroke {
	escape := len(d.rest) == 1 && d.rest[0] == '\x1b'
	d.rest = nil
	if escape {
		return []keystroke{{keyEscape, d.pasting}}
	}
	return nil
}

// next returns the first key and its length in bytes; 0 if it is not whole.
func (d *decoder) next(b []byte) (key, int) {
	if b[0] == '\x1b' {
		return d.sequence(b)
	}
	if !utf8.FullRune(b) {
		return keyNone, 0
	}
	r, n := utf8.DecodeRune(b)
	switch {
	case r == '\r' || r == '\n':
		return keyEnter, n
	case r == '\x7f' || r == '\b':
		return keyErase, n
	case r == 'U'-'@':
		return keyClear, n
	case r == 'L'-'@':
		return keyRedraw, n
	case r == utf8.RuneError || !unicode.IsPrint(r):
		return keyNone, n
	}
	return key(r), n
}

// sequence reads a key that begins with an escape: "ESC [ parameters letter", or
// "ESC O letter" of a keypad, or "ESC character" for a character with Alt.
func (d *decoder) sequence(b []byte) (key, int) {
	if len(b) == 1 {
		return keyNone, 0
	}
	if b[1] == '\x1b' {
		return keyEscape, 1
	}
	if b[1] != '[' && b[1] != 'O' {
		return keyNone, 2
	}
	end := 2
	for ; end < len(b) && (b[end] < 0x40 || b[end] > 0x7e); end++ {
	}
	if end == len(b) {
		if end > longestSequence {
			return keyNone, end
		}
		return keyNone, 0
	}
	parameters, letter := string(b[2:end]), b[end]
	switch letter {
	case 'A':
		return keyUp, end + 1
	case 'B':
		return keyDown, end + 1
	case 'H':
		return keyHome, end + 1
	case 'F':
		return keyEnd, end + 1
	case 'M':
		return keyEnter, end + 1
	case '~':
		return d.tilde(parameters + "~"), end + 1
	}
	return keyNone, end + 1
}

// tilde is a key that the terminal has a number for.
func (d *decoder) tilde(sequence string) key {
	switch sequence {
	case pasteBegin, pasteEnd:
		d.pasting = sequence == pasteBegin
		return keyNone
	}
	number, _, _ := strings.Cut(strings.TrimSuffix(sequence, "~"), ";")
	switch number {
	case "1", "7":
		return keyHome
	case "4", "8":
		return keyEnd
	case "5":
		return keyPageUp
	case "6":
		return keyPageDown
	}
	return keyNone
}
