package ir

import (
	"slices"
	"strings"
)

// IsToken reports whether a text can be the name of a header or a cookie (RFC 9110, section 5.6.2).
func IsToken(text string) bool {
	for i := range len(text) {
		if !IsTokenByte(text[i]) {
			return false
		}
	}
	return text != ""
}

// IsTokenByte reports whether a character can be in such a name.
func IsTokenByte(c byte) bool {
	return IsAlphanumeric(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// IsAlphanumeric reports whether a character is a letter or a digit of ASCII.
func IsAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// framing are the headers that say where a message ends and what becomes of its
// connection (RFC 9110, section 7.6.1; RFC 9112, section 6). Envoy writes them for
// what it sends. A change of its words is sent as it is, and then both ends differ
// on where the next message begins: the rest of one request is taken for another,
// and that may be another tenant's, since they share connections.
var framing = []string{
	"connection", "content-length", "http2-settings", "keep-alive", "proxy-connection",
	"te", "trailer", "transfer-encoding", "upgrade",
}

// IsFraming reports whether a header, of any case, says where a message ends or what becomes of its connection.
func IsFraming(name string) bool {
	return slices.ContainsFunc(framing, func(f string) bool { return strings.EqualFold(f, name) })
}

// IsFieldValue reports whether a text can be the value of a header (RFC 9110, section 5.5):
// no control characters but the tab.
func IsFieldValue(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
