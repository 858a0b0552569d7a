package re2

import "testing"

// TestSizeUTF8 protects guards whose expressions Envoy reads as UTF-8: what it would refuse as too
// large is known before, and so is what may be read in another way.
func TestSizeUTF8(t *testing.T) {
	for pattern, want := range map[string]int{
		`^/v[0-9]+/`:   6,
		`.`:            beyondASCII,
		`^.{40}`:       1 + 40*beyondASCII,
		`[^/]`:         1 + beyondASCII,
		`\D\d`:         1 + beyondASCII + 1,
		`(?i)ab`:       2 * folded,
		`(?i:[a-c]x)y`: 0, // (?i)[a-c] is [A-Ca-c]
	} {
		if want == 0 {
			want = 2 + folded + 1
		}
		if got, err := SizeUTF8(pattern); err != nil || got != want+overhead {
			t.Errorf("%q: %d and %v, want %d", pattern, got-overhead, err, want)
		}
	}
	for _, pattern := range []string{`é`, `\pL`, `\PL`, `[\x{e9}]`, `[^\x{e9}]`, `(?i)[k]`, `(`, ``, `\x{e9}{2}[\x{80}-\x{ff}]`} {
		if got, err := SizeUTF8(pattern); err == nil {
			t.Errorf("%q is accepted, with %d instructions", pattern, got)
		}
	}
}
