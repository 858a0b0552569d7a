package envoy

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
)

// The proto rules leave out much of what Envoy refuses when it loads a
// configuration, and of what would make it send broken requests. That is
// checked here.

// maxRegex bounds the estimated number of RE2 instructions of a regex. RE2
// refuses what doesn't fit in its default 8 MiB, about 131,000 instructions;
// far fewer are enough for every pattern that a person writes, and every worker
// pays for them.
const maxRegex = 20_000

// checkRegex reports why RE2, as Envoy uses it, would refuse a regex. Go's
// syntax is RE2's but for \C, which matches half a character and is refused.
func checkRegex(re string) error {
	if re == "" {
		return errors.New("the regular expression is empty")
	}
	parsed, err := syntax.Parse(re, syntax.Perl)
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

// instructions estimates the size of RE2's program, which works on the bytes of
// UTF-8 and needs several instructions for a range of characters.
func instructions(prog *syntax.Prog) int {
	const (
		anyRune = 12 // all of UTF-8, as RE2 compiles it
		perPair = 4  // a range of characters beyond ASCII, on average
	)
	n := 0
	for i := range prog.Inst {
		switch in := &prog.Inst[i]; in.Op {
		case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			n += anyRune
		case syntax.InstRune:
			n += max(1, perPair*len(in.Rune)/2)
		default:
			n++
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
