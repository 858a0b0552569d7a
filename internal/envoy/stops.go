package envoy

import (
	"slices"
	"strings"
)

// Stops reports whether a route table is there to stop a request that passes by a version from before, by what
// Guards say: which routes there are, and where they lead, stops nobody. It costs what the two differ in.
func (r *Resource) Stops(before *Resource) bool {
	around := r.Guard()
	if !slices.Equal(around, before.Guard()) {
		return true
	}
	now, then := r.unlike(before), before.unlike(r)
	answers := func(table *Resource, unlike map[string]*Part, host string) *Part {
		if p := unlike[host]; p != nil {
			return p
		}
		return table.wildcardOf(host)
	}
	stops := func(host string) bool {
		n, b := answers(r, now, host), answers(before, then, host)
		return n != nil && b != nil && !b.nobody && n.Hash != b.Hash && !n.Guard.KeptBy(b.Guard, around)
	}
	for host := range now {
		if stops(host) {
			return true
		}
	}
	for host := range then {
		if now[host] == nil && stops(host) {
			return true
		}
	}
	return false
}

// unlike returns the parts of those bundles that another version has not.
func (r *Resource) unlike(o *Resource) map[string]*Part {
	same := map[Hash]bool{}
	for _, b := range o.pieces() {
		same[b.hash] = true
	}
	out := map[string]*Part{}
	for _, b := range r.pieces() {
		if same[b.hash] {
			continue
		}
		for _, p := range b.parts {
			out[p.Name] = p
		}
	}
	return out
}

func (r *Resource) pieces() []*Bundle {
	if r.composite == nil {
		return nil
	}
	return r.bundles
}

// wildcardOf returns the most specific of the parts for many hosts that another part, for some of these or for
// one, comes before; nil if there is none. They are the first of their bundles.
func (r *Resource) wildcardOf(host string) (best *Part) {
	for _, b := range r.pieces() {
		for _, p := range b.parts {
			suffix, wildcard := strings.CutPrefix(p.Name, "*")
			if !wildcard {
				break
			}
			if p.Name != host && strings.HasSuffix(host, suffix) && (best == nil || len(p.Name) > len(best.Name)) {
				best = p
			}
		}
	}
	return best
}
