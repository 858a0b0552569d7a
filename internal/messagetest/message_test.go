package messagetest

import (
	"strings"
	"testing"
)

// failing is a test that notes whether it has failed.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper() {}

func (f *failing) Fatal(...any) { f.failed = true }

func (f *failing) Fatalf(string, ...any) { f.failed = true }

// TestCheck protects all laws about messages: one that lets everything pass would hold
// nothing.
func TestCheck(t *testing.T) {
	for text, good := range map[string]bool{
		"listener web: “äöü” is no name": true,
		strings.Repeat("a", 40):          true,
		strings.Repeat("a", 41):          false,
		"":                               false,
		"two\nlines":                     false,
		"a\x1b[31m colour":               false,
		"\u0085":                         false,
		"cut \xc3":                       false,
	} {
		f := &failing{TB: t}
		Check(f, text, 40)
		if f.failed == good {
			t.Errorf("%q: failed is %v", text, f.failed)
		}
	}
}
