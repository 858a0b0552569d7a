package xds

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// unknownVersion stands for a version that the proxy may or may not have.
const unknownVersion = "unknown"

// nack handles a refusal: it finds which resources are at fault, and what the proxy may
// have of the response all the same. The next plan corrects that.
func (s *session) nack(f *flight, message string, now time.Time) {
	g := s.gateway
	y := &s.types[f.typ]
	y.nacks++
	y.lastNack = &Nack{At: now, Message: clean(message), parts: map[string]string{}}
	g.server.metrics.nacks.WithLabelValues(y.name).Inc()
	s.restamp = true

	culprits := culpritsOf(y.atFault, f.set, message)
	for _, res := range f.set {
		r := y.records[res.Name]
		if r == nil || r.nonce != f.nonce {
			if _, culprit := culprits[res.Name]; culprit && r != nil {
				s.refusedFirst(f, r, res.Name)
			}
			continue // a newer response has it, with its own answer
		}
		r.nonce = 0
		if text, culprit := culprits[res.Name]; culprit {
			s.refusedResource(f, r, res, text, now)
		} else {
			s.resend(r, res, now)
			s.alone[Ref{f.typ, res.Name}] = len(culprits) == 0
		}
	}
	switch {
	case len(f.removed) == 0:
	case len(f.set) == 0:
		g.server.log.Warn("proxy refused a removal", "gateway", g.name.String(), "session", s.id,
			"type", y.name, "names", f.removed, "message", clean(message))
	default:
		for _, name := range f.removed {
			// The proxy may have done it. To do it again changes nothing.
			ref := Ref{f.typ, name}
			if s.seen(ref) == nil {
				s.doubt(ref, s.record(ref))
			}
			s.mark(ref, changed, now)
		}
	}
	g.server.reports.add(g)
}

// refusedFirst records that the proxy has nothing of a resource by a response, while a newer one is without an
// answer. If it was the first, the next that has the resource is.
func (s *session) refusedFirst(f *flight, r *record, name string) {
	if r.acked != "" || r.first != f.nonce || r.nonce < f.nonce {
		return
	}
	r.first = r.nonce
	for nonce, next := range s.inflight {
		if f.nonce < nonce && nonce < r.first && slices.ContainsFunc(next.set, func(o *envoy.Resource) bool { return o.Type == f.typ && o.Name == name }) {
			r.first = nonce
		}
	}
}

// refusedResource handles a resource that is at fault for a refusal.
func (s *session) refusedResource(f *flight, r *record, res *envoy.Resource, message string, now time.Time) {
	g := s.gateway
	y := &s.types[res.Type]
	ref := Ref{res.Type, res.Name}
	why := changed
	isNew := r.acked == "" && r.first == f.nonce
	switch {
	case y.stays:
		// Envoy may have left it among the clusters that warm, and would never answer about
		// clusters again. Its last good version replaces it there, or its removal does.
		s.doubt(ref, r)
		r.warming = isNew
	case isNew:
		r.sent, r.first = "", 0
		if r.subscribed {
			why = asked // the proxy waits for an answer
		}
	case y.shared:
		s.doubt(ref, r) // the last good one may have been in a refused response
	default:
		r.sent = r.acked
	}
	y.lastNack.Names = append(y.lastNack.Names, res.Name)
	y.lastNack.parts[res.Name] = message
	s.refused[ref] = res.Version
	level := slog.LevelDebug
	if g.refuse(s, g.unspelled(res), message, now) {
		level = slog.LevelWarn
	}
	g.server.log.Log(context.Background(), level, "proxy refused a resource", "gateway", g.name.String(), "session", s.id,
		"type", y.name, "name", res.Name, "version", res.Version, "message", message)
	s.mark(ref, why, now)
}

// resend handles a resource that shared a response with one at fault. It may be in force,
// but the proxy would not name it when it connects again. Envoy ignores an equal resource,
// but counts it from then on as one that it has.
func (s *session) resend(r *record, res *envoy.Resource, now time.Time) {
	ref := Ref{res.Type, res.Name}
	s.doubt(ref, r)
	s.mark(ref, changed, now)
}
