package envoy

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The proto rules leave out much of what Envoy refuses when it loads a
// configuration, and of what would make it send broken requests. That is
// checked here.

// maxRegex bounds the size of a compiled regex in instructions. RE2 refuses what
// doesn't fit in its default 8 MiB, about 131,000; far fewer are enough for
// every pattern that a person writes, and every worker pays for them.
const maxRegex = 20_000

// checkRegex reports why RE2, as Envoy uses it, would refuse a regex.
//
// Go's syntax is RE2's but for \C, which matches one byte and is refused here.
// Envoy reads patterns and texts as Latin-1: each byte is a character, and there
// are no others.
func checkRegex(re string) error {
	if re == "" {
		return errors.New("the regular expression is empty")
	}
	if !utf8.ValidString(re) {
		return errors.New("the regular expression is not valid UTF-8")
	}
	if esc := wideEscape(re); esc != "" {
		return fmt.Errorf("regular expression %q: %s stands for characters beyond \\xff, but Envoy matches bytes", re, esc)
	}
	parsed, err := syntax.Parse(latin1(re), syntax.Perl)
	if err != nil {
		return fmt.Errorf("not a valid RE2 regular expression: %w", err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return fmt.Errorf("regular expression %q: %w", re, err)
	}
	if n := instructions(prog); n > maxRegex {
		return fmt.Errorf("the regular expression is too large: it compiles to about %d instructions, the limit is %d: "+
			"use smaller repetitions or split the match", n, maxRegex)
	}
	return nil
}

// latin1 returns text with a character for each byte.
func latin1(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// classes are the names of \p{…} that mean something in Latin-1 and that RE2 and
// Go agree on, letter case and all.
var classes = strings.Fields("Any Latin Common C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No " +
	"P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs")

// wideEscape returns the first escape of characters that Latin-1 doesn't have.
func wideEscape(re string) string {
	for i := 0; i+1 < len(re); i++ {
		if re[i] != '\\' {
			continue
		}
		i++
		switch rest := re[i:]; {
		case strings.HasPrefix(rest, "x{"):
			digits, _, _ := strings.Cut(rest[2:], "}")
			if n, err := strconv.ParseUint(digits, 16, 32); err == nil && n > 0xff {
				return `\x{` + digits + "}"
			}
		case strings.HasPrefix(rest, "p{"), strings.HasPrefix(rest, "P{"):
			name, _, _ := strings.Cut(rest[2:], "}")
			if !slices.Contains(classes, strings.TrimPrefix(name, "^")) {
				return `\` + rest[:2] + name + "}"
			}
		case '0' <= rest[0] && rest[0] <= '7':
			digits := rest[:min(3, len(rest))]
			if n, err := strconv.ParseUint(digits, 8, 32); err == nil && n > 0xff {
				return `\` + digits
			}
		}
	}
	return ""
}

// instructions estimates the size of RE2's program.
func instructions(prog *syntax.Prog) int {
	n := 0
	for i := range prog.Inst {
		n++
		for _, lo := range prog.Inst[i].Rune {
			if lo <= 0xff {
				n++ // at most: two bounds make a range
			}
		}
	}
	return n
}

// checkHeaderName accepts what RFC 9110 calls a token. Envoy takes more at load
// time, and then sends requests that backends can't parse.
func checkHeaderName(name string) error {
	if name == "" {
		return errors.New("the header name is empty")
	}
	for i := range len(name) {
		if !isToken(name[i]) {
			return fmt.Errorf("%q is not a valid header name: %q is not allowed in it", name, name[i])
		}
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isToken(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// checkHeaderValue accepts a field value of RFC 9110.
func checkHeaderValue(name, value string) error {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Errorf("the value of header %q has a control character (%q), which HTTP forbids", name, c)
		}
	}
	return nil
}

// checkHost accepts what may be sent as a Host header.
func checkHost(host string) error {
	for i := range len(host) {
		if c := host[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("/?#@", c) >= 0 {
			return fmt.Errorf("hostname %q: %q is not allowed in a Host header", host, c)
		}
	}
	return nil
}

// checkPath accepts what may be sent as a path.
func checkPath(path string) error {
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c >= 0x7f {
			return fmt.Errorf("path %q: %q must be percent-encoded", path, c)
		}
	}
	return nil
}
