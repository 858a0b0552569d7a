package re2

import (
	"regexp"
	"strings"
)

// A match that can't be expressed may be what keeps requests from a wider rule, which
// would pass them: a rule that asks for a password, say, beside one for everything. So its
// rule takes all that the match can have meant, and refuses it: what can't be expressed is
// replaced by something wider that can, in the same place of the order of precedence
// (docs/decisions/0021-broken-blocks.md).

// Anything matches every value that is there.
const Anything = ".*"

// Wider returns an expression that matches whatever a pattern that can't be compiled can
// have been meant to match. It is as long as the pattern, since the length is what orders
// expressions.
func Wider(pattern string) string {
	return BeginningWith(Literal(pattern), len(pattern))
}

// BeginningWith returns an expression of at least a length for all that begins with a text.
func BeginningWith(text string, length int) string {
	const nothing = "(?:)"
	expression := regexp.QuoteMeta(text) + Anything
	if missing := length - len(expression); missing > 0 {
		expression += strings.Repeat(nothing, (missing+len(nothing)-1)/len(nothing))
	}
	return expression
}

// Literal returns the text with which all that a pattern matches begins, as far as that is
// certain whatever is wrong behind it.
func Literal(pattern string) string {
	if mayAlternate(pattern) {
		return ""
	}
	var b []byte
	rest := strings.TrimPrefix(pattern, "^")
	for len(rest) > 0 {
		c, n := rest[0], 1
		switch {
		case c == '\\' && len(rest) > 1 && rest[1] < 0x80 && !isWord(rest[1]):
			c, n = rest[1], 2
		case c >= 0x80, strings.IndexByte(`\.+*?()[]{}^$`, c) >= 0:
			return string(b)
		}
		rest = rest[n:]
		if len(rest) > 0 && strings.IndexByte("*?{", rest[0]) >= 0 {
			return string(b) // it may be there no time at all
		}
		b = append(b, c)
	}
	return string(b)
}

// mayAlternate reports whether a pattern may have alternatives as a whole. That is so where
// it has some and a bracket is missing: nobody knows where.
func mayAlternate(pattern string) bool {
	some, within := false, false // an alternative, and what looks like one in a class
	depth, class := 0, false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
			within = within || c == '|'
		case c == '[':
			class, within = true, false
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth <= 0:
			return true
		case c == '|':
			some = true
		}
	}
	return some && depth != 0 || within && class
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
