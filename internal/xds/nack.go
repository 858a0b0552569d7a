package xds

import (
	"context"
	"log/slog"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// unknown stands for a version that the proxy may or may not have.
const unknown = "unknown"

// nack takes a refusal: whose fault it is, and what the proxy may have of the
// response all the same. The next plan puts that right.
func (s *session) nack(f *flight, message string, now time.Time) {
	g := s.gateway
	y := &s.types[f.typ]
	y.nacks++
	y.lastNack = &Nack{At: now, Message: clean(message)}
	g.server.metrics.nacks.WithLabelValues(y.name).Inc()
	s.restamp = true

	culprits := blame(y.atFault, f.set, message)
	for _, res := range f.set {
		r := y.records[res.Name]
		if r == nil || r.nonce != f.nonce {
			continue // a newer response has it, with its own answer
		}
		r.nonce = 0
		if text, culprit := culprits[res.Name]; culprit {
			s.culprit(f, r, res, text, now)
		} else {
			s.bystander(r, res, now)
			s.alone[Ref{f.typ, res.Name}] = len(culprits) == 0
		}
	}
	switch {
	case len(f.removed) == 0:
	case len(f.set) == 0:
		g.server.log.Warn("proxy refused a removal", "gateway", g.name, "session", s.id,
			"type", y.name, "names", f.removed, "message", clean(message))
	default:
		for _, name := range f.removed {
			// It may or may not have happened; once more does no harm.
			ref := Ref{f.typ, name}
			if y.records[name] == nil {
				s.record(ref).sent = unknown
			}
			s.mark(ref, changed, now)
		}
	}
	g.server.reports.add(g)
}

// culprit deals with a resource that was refused.
func (s *session) culprit(f *flight, r *record, res *envoy.Resource, message string, now time.Time) {
	g := s.gateway
	y := &s.types[res.Type]
	ref := Ref{res.Type, res.Name}
	why := changed
	isNew := r.acked == "" && r.first == f.nonce
	switch {
	case y.stays:
		// Envoy may have left it among the clusters that warm, and would never
		// answer about clusters again: the last good version takes its place
		// there, or its removal.
		r.sent = unknown
		r.stuck = isNew
	case isNew:
		r.sent, r.first = "", 0
		if r.subscribed {
			why = asked // and waits for an answer
		}
	case y.shared:
		r.sent = unknown // an earlier one may have been a bystander
	default:
		r.sent = r.acked
	}
	y.lastNack.Names = append(y.lastNack.Names, res.Name)
	s.refused[ref] = res.Version
	level := slog.LevelDebug
	if g.refuse(res, message, now) {
		level = slog.LevelWarn
	}
	g.server.log.Log(context.Background(), level, "proxy refused a resource", "gateway", g.name, "session", s.id,
		"type", y.name, "name", res.Name, "version", res.Version, "message", message)
	s.mark(ref, why, now)
}

// bystander deals with a resource that shared a response with a culprit. It may
// be in force, but the proxy would not say so when it comes back: sent again, it
// takes note and does nothing.
func (s *session) bystander(r *record, res *envoy.Resource, now time.Time) {
	r.sent = unknown
	s.mark(Ref{res.Type, res.Name}, changed, now)
}
