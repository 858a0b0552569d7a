package re2

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestRefused protects proxies from expressions that Envoy's RE2 would refuse, and tells
// why. What it accepts, package envoy's tests compile.
func TestRefused(t *testing.T) {
	for pattern, want := range map[string]string{
		``:              "empty",
		`(`:             "missing closing",
		`a**`:           "invalid nested repetition",
		`a{1001}`:       "invalid repeat count",
		`(?=a)`:         "invalid or unsupported Perl syntax",
		`\1`:            "invalid escape sequence",
		`\x{100}`:       `\x{100} is beyond \x{FF}`,
		`\400`:          `\400 is beyond`,
		`\p{Greek}`:     `\p{Greek} stands for`,
		`\p{lu}`:        `\p{lu} stands for`,
		"a\xff":         "not valid UTF-8",
		"(ä":            `missing closing ) in "(ä"`,
		`(?:a{99}){99}`: "invalid repeat count",
		`(?:abc){1000}` + strings.Repeat(`.{1000}`, 20): "about 43004 instructions, over the limit of 10000",
	} {
		if _, err := Size(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", pattern, err, want)
		}
	}
}

// TestSize protects budgets: a size is what RE2 makes of an expression, within a few
// instructions, and counted repetitions are multiplied.
func TestSize(t *testing.T) {
	for pattern, want := range map[string]int{
		`a`:               1,
		`abc`:             3,
		`日本`:              6, // a character for each byte
		`(?i)abc`:         3,
		`.`:               2,
		`(?s).`:           1,
		`[a-z]`:           1,
		`[a-cx-z]`:        2,
		`[^a]`:            2,
		`a*b+c?`:          6,
		`(ab)`:            4,
		`a|bc|d`:          6,
		`a{7}`:            7,
		`a{2,}`:           3,
		`a{,7}`:           5, // no repetition
		`[ab]{1,9}`:       17,
		`(?:a{10}){10}`:   100,
		`(?:[a-z]{1,9}x)`: 18,
	} {
		if got, err := Size(pattern); err != nil || got != want+overhead {
			t.Errorf("%q: %d and %v, want %d", pattern, got-overhead, err, want)
		}
	}
}

// TestCost protects the controller: the size of an expression that would be compiled to
// millions of instructions is known at once.
func TestCost(t *testing.T) {
	huge := strings.Repeat(`(?:[a-z]{10}){100}`, 220) // 4 KiB, 220,000 instructions
	began := time.Now()
	for i := range 100 {
		var large *TooLargeError
		if _, err := Size(fmt.Sprint(i, huge)); !errors.As(err, &large) || large.Size < 220_000 {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("100 expressions take %s", took)
	}
}

// TestKnown protects memory: what is kept of expressions is bounded, and those that are
// asked for again stay.
func TestKnown(t *testing.T) {
	c := cache{}
	for i := range 40_000 {
		c.put(fmt.Sprint(i)+strings.Repeat("a", 1000), result{size: i})
		if r, ok := c.get("0" + strings.Repeat("a", 1000)); !ok || r.size != 0 {
			t.Fatalf("an expression that is asked for again is lost after %d others", i)
		}
	}
	if n := len(c.young) + len(c.old); n > 2*generation/1000 {
		t.Errorf("%d expressions are kept", n)
	}
}
