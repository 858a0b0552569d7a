package re2

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"testing"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
)

// FuzzSize protects the budgets: an expression that is accepted is one that a compiler of
// the same syntax takes too and makes no more of than is counted, and one that is not is
// refused with a text that can be printed, whatever it says itself.
func FuzzSize(f *testing.F) {
	for _, seed := range []string{
		`a`, `^/(v1|v2)/[a-z]{1,9}x*$`, `(?i)ä+`, `(?:a{10}){100}`, `\x{100}`, `\p{Greek}`, `[[:alpha:]]`, `\Qa.b\E`, `(?P<n>x)`,
		"a\xff", `(`, `a**`, "\x1b[31m(", `\400`, `(?:(?:a{1,1000}){1,1000}`, `.{0,1000}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		n, err := compile(pattern)
		var large *TooLargeError
		if err != nil {
			messagetest.Error(t, err, 4*len(pattern)+200) // a byte that can't be printed takes four
			if errors.As(err, &large) && large.Size <= Most {
				t.Fatalf("%q is refused for its size of %d", pattern, large.Size)
			}
			return
		}
		if pattern == "" || !utf8.ValidString(pattern) {
			t.Fatalf("%q is accepted", pattern)
		}
		if n < overhead || n > Most {
			t.Fatalf("%q has %d instructions", pattern, n)
		}
		if _, err := regexp.Compile(characters(pattern)); err != nil {
			t.Fatalf("%q is accepted, and can't be compiled: %v", pattern, err)
		}
		// What is kept of it is the same.
		if again, err := Size(pattern); err != nil || again != n {
			t.Fatalf("%q: %d and %v, then %d", pattern, again, err, n)
		}
		// Go's compiler makes a program of about as many instructions: nobody gets more than
		// is counted.
		tree, err := syntax.Parse(characters(pattern), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if made := len(program.Inst); made > 2*n+8 {
			t.Fatalf("%q counts for %d instructions, and makes %d", pattern, n, made)
		}
	})
}
