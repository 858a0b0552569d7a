package ir

import "strings"

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
