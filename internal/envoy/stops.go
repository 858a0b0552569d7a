package envoy

import (
	"slices"
	"strings"
)

// Stops reports whether a route table is there to stop a request that passes by the version from before, by what
// Guards say: which routes there are, and where they lead, stops nobody. A version since then is known to stop none, or
// is the one from before: what is looked at is in what has changed since.
func (r *Resource) Stops(before, since *Resource) bool {
	around := r.Guard()
	if !slices.Equal(around, before.Guard()) {
		return true
	}
	for host, n := range r.changedSince(before, since) {
		b := before.host(host)
		if n == nil {
			n = r.wildcardOf(host)
		}
		if b == nil {
			b = before.wildcardOf(host)
		}
		if n != nil && b != nil && !b.nobody && n.Hash != b.Hash && !n.Guard.KeptBy(b.Guard, around) {
			return true
		}
	}
	return false
}

// TakesOver reports whether a route configuration decides itself who may pass of requests of which the version
// before left that to what stands beside it.
func (r *Resource) TakesOver(before *Resource) bool {
	for host, n := range r.unlike(before) {
		b := before.host(host)
		if n == nil {
			n = r.wildcardOf(host)
		}
		if b == nil {
			b = before.wildcardOf(host)
		}
		if n != nil && b != nil && n.Hash != b.Hash && n.Guard.takesOver(b.Guard) {
			return true
		}
	}
	return false
}

// fewHosts is how many hosts are found one by one.
const fewHosts = 64

// changedSince returns the parts that are others than in a version since then, nil for one that has gone. If these
// are many, or stand in front of others, it is those that are others than before.
func (r *Resource) changedSince(before, since *Resource) map[string]*Part {
	changed := r.unlike(since)
	if since == before {
		return changed
	}
	if len(changed) > fewHosts {
		return r.unlike(before)
	}
	for host := range changed {
		if strings.HasPrefix(host, "*") {
			return r.unlike(before)
		}
	}
	return changed
}

// unlike returns the parts that are others than in another version, nil for those that are only there.
func (r *Resource) unlike(o *Resource) map[string]*Part {
	mine, others := r.pieces(), o.pieces()
	for len(mine) > 0 && len(others) > 0 && mine[0].Equal(others[0]) {
		mine, others = mine[1:], others[1:]
	}
	for len(mine) > 0 && len(others) > 0 && mine[len(mine)-1].Equal(others[len(others)-1]) {
		mine, others = mine[:len(mine)-1], others[:len(others)-1]
	}
	was := map[string]*Part{}
	for _, b := range others {
		for _, p := range b.parts {
			was[p.Name] = p
		}
	}
	out := map[string]*Part{}
	for _, b := range mine {
		for _, p := range b.parts {
			if w := was[p.Name]; w == nil || w.Hash != p.Hash {
				out[p.Name] = p
			}
			delete(was, p.Name)
		}
	}
	for name := range was {
		out[name] = nil
	}
	return out
}

func (r *Resource) pieces() []*Bundle {
	if r.composite == nil {
		return nil
	}
	return r.bundles
}

// host returns the part of a name; nil if there is none.
func (r *Resource) host(name string) *Part {
	for _, b := range r.pieces() {
		if i, ok := slices.BinarySearchFunc(b.parts, name, func(p *Part, name string) int { return strings.Compare(p.Name, name) }); ok {
			return b.parts[i]
		}
	}
	return nil
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
