package xds

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// versions returns one hash of all that the proxy is to have of the types that it has asked for,
// and one of what it has. They are equal where it has acknowledged everything that is wanted;
// which names count follows from what it asks for, so that they are equal in proxies of a Gateway
// that ask for the same. What is being removed counts for neither. The gateway's mutex is held.
func (s *session) versions() (wanted, acknowledged string) {
	now := hashes{commit: s.gateway.commit, changes: s.changes}
	if was := s.hashes; was.wanted != "" && was.commit == now.commit && was.changes == now.changes {
		return was.wanted, was.acknowledged
	}
	var want, have uint64
	for t := range s.types {
		y := &s.types[t]
		if !y.started {
			continue
		}
		entries := s.gateway.entries[t]
		count := func(name string, e *entry, r *record) {
			want += e.sum
			switch v := r.has(); v {
			case "":
			case e.want.Version:
				have += e.sum
			default:
				have += hashOf(y.name, name, v)
			}
		}
		if y.wildcard {
			for name, e := range entries {
				count(name, e, s.seen(Ref{envoy.Type(t), name})) //nolint:gosec // an index of the types' array
			}
			continue
		}
		for name, r := range s.each(envoy.Type(t)) { //nolint:gosec // an index of the types' array
			if e := entries[name]; e != nil && r.subscribed {
				count(name, e, r)
			}
		}
	}
	now.wanted, now.acknowledged = shortHash(want), shortHash(have)
	s.hashes = now
	return now.wanted, now.acknowledged
}

// hashes are what versions has returned, and when that was: asked again, it answers without a look at each resource.
type hashes struct {
	wanted, acknowledged string
	commit, changes      uint64
}

// has returns the version that the proxy has for certain; empty for none.
func (r *record) has() string {
	switch {
	case r == nil:
		return ""
	case r.nonce != 0 || r.sent == unknownVersion:
		return r.acked
	default:
		return r.sent
	}
}

// hashOf hashes one version. The hashes of many are added, so that their order is of no account.
func hashOf(typ, name, version string) uint64 {
	h := fnv.New64a()
	for _, text := range []string{typ, name, version} {
		_, _ = io.WriteString(h, text)
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// shortHash has as many digits as people compare.
func shortHash(sum uint64) string { return fmt.Sprintf("%07x", sum>>36) }

// refuses returns what this proxy has refused last and is still without; nil for nothing. Others of
// the fleet may have it. rejected are the Gateway's refusals, which name the host of a table.
// The gateway's mutex is held.
func (s *session) refuses(rejected []Rejected) *Refusal {
	var newest *Refusal
	for t := range s.types {
		n := s.types[t].lastNack
		if n == nil || newest != nil && !n.At.After(newest.At) {
			continue
		}
		for _, name := range n.Names {
			e := s.gateway.entries[t][name]
			if e == nil {
				continue
			}
			has := s.seen(Ref{envoy.Type(t), name}).has() //nolint:gosec // an index of the types' array
			if has == e.want.Version {
				continue // it has taken it since
			}
			r := Rejected{Ref: Ref{envoy.Type(t), name}, Version: e.want.Version, Message: n.parts[name], ServingOld: has != ""} //nolint:gosec // an index of the types' array
			if i := slices.IndexFunc(rejected, func(known Rejected) bool { return known.Ref == r.Ref }); i >= 0 {
				r = rejected[i]
			}
			newest = &Refusal{At: n.At, Rejected: r}
			break
		}
	}
	return newest
}

// Refusal is what a proxy refuses, and since when.
type Refusal struct {
	At time.Time
	Rejected
}
