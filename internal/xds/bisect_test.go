package xds

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// hosts returns a table of n hosts, of which some are bad.
func hosts(n int, bad map[int]bool, version string) *envoy.Resource {
	var list []string
	for i := range n {
		v := version
		if bad[i] {
			v = "bad" + version
		}
		list = append(list, fmt.Sprintf("h%04d:%s", i, v))
	}
	return table("t", list...)
}

// answerAll answers as a proxy until there is nothing more to send, and returns the number of
// pushes.
func answerAll(t interface{ Fatalf(string, ...any) }, e *entry, b *bisection) int {
	for pushes := 1; ; pushes++ {
		r := b.table
		if b.whole || e.good.Equal(r) {
			return pushes
		}
		if strings.Contains(string(r.Body()), "bad") {
			b.refused(e.want, e.good, r, "no")
		} else {
			e.good = r
			if !b.accepted(e.want, r) {
				return pushes
			}
		}
		if pushes > 10_000 {
			t.Fatalf("no end")
		}
	}
}

func (b *bisection) culprits() []string {
	var out []string
	for name, w := range b.withheld {
		if w.culprit {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// All hosts that are bad are found, and no others, in about k log n pushes, also after
// further changes.
func TestBisectionFindsExactlyTheCulprits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "hosts")
		e := &entry{}
		if rapid.Bool().Draw(t, "known") {
			e.good = hosts(n, nil, "0")
		}
		b := newBisection(unavailable)
		bad := map[int]bool{}
		for round := range rapid.IntRange(1, 4).Draw(t, "rounds") {
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 5).Draw(t, "bad") {
				bad[i] = !bad[i]
			}
			e.want = hosts(n, bad, fmt.Sprint(round+1))
			b.rebase(e.want, e.good)
			if rapid.Bool().Draw(t, "whole search") {
				answerAll(t, e, b)
			} else if strings.Contains(string(b.table.Body()), "bad") { // changed in the middle of one
				b.refused(e.want, e.good, b.table, "no")
			}
		}
		answerAll(t, e, b)
		var want []string
		for i := range n {
			if bad[i] {
				want = append(want, fmt.Sprintf("h%04d", i))
			}
		}
		if got := b.culprits(); !slices.Equal(got, want) || len(b.withheld) != len(want) {
			t.Fatalf("found %v of %d withheld, want %v", got, len(b.withheld), want)
		}
		if strings.Contains(string(e.good.Body()), "bad") {
			t.Fatalf("a bad host is in force")
		}
	})
}

func TestBisectionIsLogarithmic(t *testing.T) {
	for _, c := range []struct{ n, bad int }{{10, 2}, {1000, 1}, {1000, 3}, {5000, 1}} {
		bad := map[int]bool{}
		for i := range c.bad {
			bad[i*c.n/c.bad+c.n/(2*c.bad)] = true
		}
		e := &entry{want: hosts(c.n, bad, "2"), good: hosts(c.n, nil, "1")}
		b := newBisection(unavailable)
		b.refused(e.want, e.good, e.want, "no")
		got, limit := answerAll(t, e, b), 2*c.bad*bits.Len(uint(c.n))+3
		t.Logf("%d of %d hosts found in %d pushes", c.bad, c.n, got)
		if got > limit || len(b.culprits()) != c.bad {
			t.Errorf("%d of %d: %d pushes, at most %d expected; found %v", c.bad, c.n, got, limit, b.culprits())
		}
	}
}
