package re2

import (
	"regexp/syntax"
	"slices"
)

// Most is the largest program that one expression may make. RE2 gives up near 130,000
// instructions (8 MiB); far below that an expression already costs more memory and time
// than a route should.
const Most = 10_000

// beyond is what size answers for everything that is too large to be told exactly.
const beyond = 1 << 30

// size returns how many instructions RE2 makes of an expression, within a few, without
// making them: repetitions that are counted would be copied as often.
func size(re *syntax.Regexp) int { return sizeBy(re, inLatin) }

// inLatin is how many instructions one character is.
func inLatin(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass:
		n := 0
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i] <= latin {
				n++ // an instruction for each range
			}
		}
		return max(n, 1)
	case syntax.OpAnyCharNotNL:
		return 2
	default:
		return 1
	}
}

// sizeBy returns how many instructions RE2 makes of an expression, where characters says it of
// what stands for single ones.
func sizeBy(re *syntax.Regexp, characters func(*syntax.Regexp) int) int {
	switch re.Op {
	case syntax.OpCapture:
		return sizeBy(re.Sub[0], characters) + 2
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return sizeBy(re.Sub[0], characters) + 1
	case syntax.OpRepeat:
		one := sizeBy(re.Sub[0], characters)
		if re.Max < 0 {
			return bounded(max(re.Min, 1)*one + 1)
		}
		return bounded(re.Min*one + (re.Max-re.Min)*(one+1))
	case syntax.OpConcat, syntax.OpAlternate:
		n := 0
		if re.Op == syntax.OpAlternate {
			n = len(re.Sub) - 1
		}
		for _, sub := range re.Sub {
			n = bounded(n + sizeBy(sub, characters))
		}
		return n
	default:
		return characters(re)
	}
}

// bounded keeps sums and products from overflowing: what is multiplied next is at most
// 1,000, the most that RE2 lets anything be repeated.
func bounded(n int) int { return min(n, beyond) }

// latin is the last character of Latin-1, in which Envoy reads patterns and texts.
const latin = 0xff

// overhead is what every program has besides: the beginning, the end, a match.
const overhead = 4

// Anchored reports whether an expression looks for the begin or the end of the text.
func Anchored(pattern string) bool {
	tree, err := syntax.Parse(characters(pattern), syntax.Perl)
	return err != nil || anchored(tree)
}

func anchored(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return true
	default:
		return slices.ContainsFunc(re.Sub, anchored)
	}
}
