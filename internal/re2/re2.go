package re2

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A TooLargeError says that an expression is one that RE2 knows, and larger than Most.
type TooLargeError struct{ Size int }

// Error says how large it is.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("it compiles to about %d instructions, over the limit of %d", e.Size, Most)
}

// Size returns how many instructions Envoy's RE2 makes of an expression. The error says why
// it would refuse it, without the expression; it is a *TooLargeError where nothing but the
// size is wrong. Any number of goroutines may ask.
func Size(pattern string) (int, error) {
	if r, ok := known.get(pattern); ok {
		return r.size, r.err
	}
	var r result
	r.size, r.err = compile(pattern)
	known.put(pattern, r)
	return r.size, r.err
}

// compile looks at an expression as Envoy's RE2 does, which reads it as Latin-1. Go's syntax
// is RE2's but for \C, which matches one byte and is refused here.
func compile(pattern string) (int, error) {
	switch {
	case pattern == "":
		return 0, errors.New("it is empty")
	case !utf8.ValidString(pattern):
		return 0, errors.New("it is not valid UTF-8")
	}
	if err := wideEscape(pattern); err != nil {
		return 0, err
	}
	tree, err := syntax.Parse(characters(pattern), syntax.Perl)
	if refused, ok := errors.AsType[*syntax.Error](err); ok {
		return 0, fmt.Errorf("%s in %q", refused.Code, bytesOf(refused.Expr))
	}
	if err != nil {
		return 0, err
	}
	n := size(tree) + overhead
	if n > Most {
		return 0, &TooLargeError{Size: n}
	}
	return n, nil
}

// characters returns text with a character for each byte.
func characters(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// bytesOf is what characters was given.
func bytesOf(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		out = append(out, byte(r))
	}
	return string(out)
}

// classes are the names of \p{…} that mean something in Latin-1 and that RE2 and
// Go agree on, letter case and all.
var classes = strings.Fields("Any Latin Common C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No " +
	"P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs")

// wideEscape finds an escape of characters that Latin-1 doesn't have.
func wideEscape(re string) error {
	for i := 0; i+1 < len(re); i++ {
		if re[i] != '\\' {
			continue
		}
		i++
		switch rest := re[i:]; {
		case strings.HasPrefix(rest, "x{"):
			digits, _, _ := strings.Cut(rest[2:], "}")
			if n, err := strconv.ParseUint(digits, 16, 32); err == nil && n > latin {
				return fmt.Errorf(`\x{%s} is beyond \x{FF}; write the character itself`, digits)
			}
		case strings.HasPrefix(rest, "p{"), strings.HasPrefix(rest, "P{"):
			name, _, _ := strings.Cut(rest[2:], "}")
			if !slices.Contains(classes, strings.TrimPrefix(name, "^")) {
				name = strings.Map(printable, name)
				return fmt.Errorf(`\%s%s} stands for characters beyond \x{FF}; Envoy matches bytes`, rest[:2], name)
			}
		case '0' <= rest[0] && rest[0] <= '7':
			digits := rest[:min(3, len(rest))]
			if n, err := strconv.ParseUint(digits, 8, 32); err == nil && n > latin {
				return fmt.Errorf(`\%s is beyond \377; write the character itself`, digits)
			}
		}
	}
	return nil
}

// printable is the character, or one in place of a control character.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return unicode.ReplacementChar
	}
	return r
}
