package translate

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

// maxRegexProgram bounds a compiled regular expression in instructions. Envoy's
// RE2 gives up near 130,000 (8 MiB); far below that one expression already costs
// more memory and time than a route should.
const maxRegexProgram = 10_000

// regex checks a regular expression against Envoy's RE2.
func (t *translation) regex(at position, name, pattern string) bool {
	size, err := regexSize(pattern)
	switch {
	case err != nil:
		f := at.field(name)
		t.refuse(f, condition.InvalidRegex(f, pattern, err))
		return false
	case size > maxRegexProgram:
		f := at.field(name)
		t.refuse(f, condition.RegexTooLarge(f, pattern, size, maxRegexProgram))
		return false
	}
	return true
}

// regexSize compiles a pattern. Go's syntax is RE2's but for \C, which Go refuses,
// and for Latin-1, in which Envoy compiles: there no character has a number above
// 255.
func regexSize(pattern string) (int, error) {
	if pattern == "" {
		return 0, errors.New("it is empty")
	}
	if err := wideEscape(pattern); err != nil {
		return 0, err
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if refused, ok := errors.AsType[*syntax.Error](err); ok {
		return 0, fmt.Errorf("%s in %q", refused.Code, refused.Expr)
	}
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0, err
	}
	return len(prog.Inst), nil
}

// wideEscape finds an escape such as \x{263A} of a character beyond Latin-1.
func wideEscape(pattern string) error {
	for rest := pattern; ; {
		i := strings.IndexByte(rest, '\\')
		if i < 0 || i+1 == len(rest) {
			return nil
		}
		rest = rest[i+1:]
		if digits, ok := strings.CutPrefix(rest, "x{"); ok {
			digits, _, _ = strings.Cut(digits, "}")
			if n, err := strconv.ParseUint(digits, 16, 32); err == nil && n > 0xff {
				return fmt.Errorf("\\x{%s} is beyond \\x{FF}; write the character itself", digits)
			}
		}
		rest = rest[1:]
	}
}
