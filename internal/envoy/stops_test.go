package envoy

import (
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
	slices.Sort(texts)
	var parts []*Part
	for _, t := range texts {
		parts = append(parts, partOf(t))
	}
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
			if got := tableOf(nil, c.now...).Stops(tableOf(nil, c.before...)); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	k, l := Guard{{By: 7}}, Guard{{By: 8}}
	if !tableOf(k, "a").Stops(tableOf(l, "a")) || !tableOf(k, "a").Stops(tableOf(nil, "a")) {
		t.Error("what is said around all hosts is another one, and stops nobody")
	}
	if !tableOf(k, "a").Stops(tableOf(k, "a@k")) {
		t.Error("what a host said in place of what is said around it is gone, and that stops nobody")
	}
}

// TestStopsAsEachHostDoes compares with what each host says, one by one.
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
	for range 20_000 {
		a, b := random(), random()
		var around Guard
		if r.IntN(2) == 0 {
			around = Guard{{By: 3}}
		}
		want := false
		for _, h := range hosts {
			n, o := answering(b, h), answering(a, h)
			want = want || n != nil && o != nil && n.Hash != o.Hash && !n.Guard.KeptBy(o.Guard, around)
		}
		if got := tableOf(around, b...).Stops(tableOf(around, a...)); got != want {
			t.Fatalf("from %v to %v, around %v: %v, want %v", a, b, around, got, want)
		}
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
