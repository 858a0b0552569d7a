package re2

import (
	"errors"
	"regexp/syntax"
	"slices"
	"unicode"
)

// What stands for characters beyond ASCII is several bytes to RE2 where it reads UTF-8: a tree of
// ranges of bytes for each class, and other characters for a letter whose case doesn't matter.
// Both are no more than this.
const (
	beyondASCII = 12
	folded      = 6
)

// SizeUTF8 returns how many instructions at most RE2 makes of an expression where Envoy has it
// read UTF-8, as it does in CEL. The error says why the expression is refused: it must be in ASCII,
// and its classes have all characters beyond it or none, since only of those the size is known.
func SizeUTF8(pattern string) (int, error) {
	for i := range len(pattern) {
		if pattern[i] > unicode.MaxASCII {
			return 0, errors.New("it has characters beyond ASCII")
		}
	}
	if _, err := Size(pattern); err != nil {
		return 0, err
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	n, known := 0, true
	n = sizeBy(tree, func(re *syntax.Regexp) int {
		switch re.Op {
		case syntax.OpLiteral:
			known = known && !slices.ContainsFunc(re.Rune, func(r rune) bool { return r > unicode.MaxASCII })
			if re.Flags&syntax.FoldCase != 0 {
				return folded * len(re.Rune)
			}
			return len(re.Rune)
		case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
			return beyondASCII
		case syntax.OpCharClass:
			size := 0
			for i := 0; i+1 < len(re.Rune); i += 2 {
				switch {
				case re.Rune[i+1] <= unicode.MaxASCII:
					size++
				case re.Rune[i+1] == unicode.MaxRune && re.Rune[i] <= unicode.MaxASCII+1:
					size += beyondASCII
				default:
					known = false
				}
			}
			return max(size, 1)
		default:
			return 1
		}
	})
	if !known {
		return 0, errors.New("it means some characters beyond ASCII, and not all of them")
	}
	return n + overhead, nil
}
