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

// Told is a URL for a message: without what may be private of it, a user, a password, and what
// stands in its query.
func Told(text string) string {
	text, _, _ = strings.Cut(text, "#")
	text, _, query := strings.Cut(text, "?")
	scheme, rest, ok := strings.Cut(text, "//")
	if !ok {
		scheme, rest = "", text
	}
	authority, path, slash := strings.Cut(rest, "/")
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		authority = "…" + authority[at:]
	}
	if ok {
		authority = scheme + "//" + authority
	}
	if slash {
		authority += "/" + path
	}
	if query {
		authority += "?…"
	}
	return Printable(authority)
}

func quote(text string) string { return strconv.Quote(Printable(text)) }
