package envoy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// partOf returns what is written as a domain, behind an @ by what its one route is guarded, and behind a # what else
// it says.
func partOf(text string) *Part {
	hash := Sum([]byte(text))
	text, _, _ = strings.Cut(text, "#")
	domain, by, guarded := strings.Cut(text, "@")
	p := &Part{Name: domain, Hash: hash, nobody: by == "nobody"}
	if guarded && !p.nobody {
		p.Guard = Guard{{By: uint64(by[0])}}
	}
	return p
}

func tableOf(around Guard, texts ...string) *Resource {
	var parts []*Part
	for _, t := range texts {
		parts = append(parts, partOf(t))
	}
	slices.SortFunc(parts, func(a, b *Part) int { return strings.Compare(a.Name, b.Name) })
	// Half of the bundles are the same in tables that differ.
	var bundles []*Bundle
	for half := range slices.Chunk(parts, 2) {
		bundles = append(bundles, NewBundle(half))
	}
	return newBundled(Routes, "t", nil, bundles).Guarded(around)
}

func TestStops(t *testing.T) {
	for what, c := range map[string]struct {
		before, now []string
		want        bool
	}{
		"nothing":                            {[]string{"a"}, []string{"a"}, false},
		"other routes":                       {[]string{"a"}, []string{"a#2"}, false},
		"a new host":                         {[]string{"a"}, []string{"a", "b@k"}, false},
		"a guard":                            {[]string{"a"}, []string{"a@k"}, true},
		"another guard":                      {[]string{"a@k"}, []string{"a@l"}, true},
		"no guard any more":                  {[]string{"a@k"}, []string{"a"}, false},
		"a host goes":                        {[]string{"a", "b@k"}, []string{"a"}, false},
		"a guarded one that many gave way":   {[]string{"*.x"}, []string{"*.x", "a.x@k"}, true},
		"and one of the same guard":          {[]string{"*.x@k"}, []string{"*.x@k", "a.x@k"}, false},
		"it goes, and a guarded one takes":   {[]string{"*.x@k", "a.x"}, []string{"*.x@k"}, true},
		"it goes, and an open one takes":     {[]string{"*.x", "a.x@k"}, []string{"*.x"}, false},
		"many, by more specific ones":        {[]string{"*", "*.x"}, []string{"*", "*.a.x@k", "*.x"}, true},
		"a guard where nobody passed":        {[]string{"*@nobody"}, []string{"*@nobody", "a@k"}, false},
		"nobody passes any more":             {[]string{"a"}, []string{"a@nobody"}, false},
		"many, and everything was guarded":   {[]string{"*@k"}, []string{"*@k", "*.x"}, false},
		"a wildcard that covers no such one": {[]string{"*.y"}, []string{"*.y", "a.x@k"}, false},
	} {
		t.Run(what, func(t *testing.T) {
			before := tableOf(nil, c.before...)
			if got := tableOf(nil, c.now...).Stops(before, before); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	k, l := Guard{{By: 7}}, Guard{{By: 8}}
	for _, around := range []Guard{l, nil} {
		before := tableOf(around, "a")
		if !tableOf(k, "a").Stops(before, before) {
			t.Error("what is said around all hosts is another one, and stops nobody")
		}
	}
	if before := tableOf(k, "a@k"); !tableOf(k, "a").Stops(before, before) {
		t.Error("what a host said in place of what is said around it is gone, and that stops nobody")
	}
}

// TestStopsAsEachHostDoes compares with what each host says, one by one, through versions that stop nobody.
func TestStopsAsEachHostDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	domains := []string{"*", "*.x", "*.a.x", "*.b.x", "a.x", "b.x", "c.a.x", "c.b.x", "y"}
	hosts := []string{"a.x", "b.x", "c.x", "c.a.x", "d.a.x", "c.b.x", "d.b.x", "y", "z"}
	random := func() (texts []string) {
		for _, d := range domains {
			switch r.IntN(4) {
			case 0:
				texts = append(texts, d)
			case 1:
				texts = append(texts, d+"@"+string(rune('k'+r.IntN(2))))
			}
		}
		return texts
	}
	since, through := 0, 0
	for range 20_000 {
		a, between, b := random(), random(), random()
		var around Guard
		if r.IntN(2) == 0 {
			around = Guard{{By: 3}}
		}
		before := tableOf(around, a...)
		last := tableOf(around, between...)
		if last.Stops(before, before) {
			last = before
		} else {
			// A step from there, as most edits are.
			b = slices.Clone(between)
			if i := r.IntN(len(domains)); i < len(b) {
				b[i] = domains[r.IntN(len(domains))] + "@k"
				slices.SortFunc(b, func(x, y string) int { return strings.Compare(partOf(x).Name, partOf(y).Name) })
				b = slices.CompactFunc(b, func(x, y string) bool { return partOf(x).Name == partOf(y).Name })
			}
			through++
		}
		want := false
		for _, h := range hosts {
			n, o := answering(b, h), answering(a, h)
			want = want || n != nil && o != nil && n.Hash != o.Hash && !n.Guard.KeptBy(o.Guard, around)
		}
		if got := tableOf(around, b...).Stops(before, last); got != want {
			t.Fatalf("from %v by %v to %v, around %v: %v, want %v", a, between, b, around, got, want)
		}
		if want {
			since++
		}
	}
	if through < 1000 || since < 1000 {
		t.Errorf("%d by another version, and %d that stop: too few to tell", through, since)
	}
}

// answering is the part that has a host, by the law of Envoy.
func answering(texts []string, host string) (best *Part) {
	for _, text := range texts {
		p := partOf(text)
		suffix, wildcard := strings.CutPrefix(p.Name, "*")
		switch {
		case p.Name == host:
			return p
		case wildcard && len(host) > len(suffix) && strings.HasSuffix(host, suffix) && (best == nil || len(p.Name) > len(best.Name)):
			best = p
		}
	}
	return best
}

// An edit of one host of many, with all others changed before.
func BenchmarkStops(b *testing.B) {
	const bundles, hosts = 512, 10
	table := func(version func(i int) int) *Resource {
		out := make([]*Bundle, bundles)
		for i := range out {
			parts := make([]*Part, hosts)
			for j := range parts {
				parts[j] = partOf(fmt.Sprintf("r%04d-%d.example.com#%d", i, j, version(i)))
			}
			out[i] = NewBundle(parts)
		}
		return newBundled(Routes, "t", nil, out)
	}
	before, since := table(func(int) int { return 0 }), table(func(int) int { return 1 })
	bundlesNow := slices.Clone(since.bundles)
	bundlesNow[300] = NewBundle(append([]*Part{partOf("r0300-0.example.com#2")}, bundlesNow[300].parts[1:]...))
	now := newBundled(Routes, "t", nil, bundlesNow)
	b.ReportAllocs()
	for b.Loop() {
		if now.Stops(before, since) {
			b.Fatal("stops nobody")
		}
	}
}
