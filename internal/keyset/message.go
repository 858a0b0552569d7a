package keyset

import (
	"strconv"
	"strings"
	"unicode"
)

// maxQuoted bounds what of others' text a message has.
const maxQuoted = 200

// Printable is a text of others for a message: short, in one line, and without control
// characters.
func Printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "…"
	}
	return text
}

func quote(text string) string { return strconv.Quote(Printable(text)) }
