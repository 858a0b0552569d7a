package xds

import (
	"fmt"
	"strconv"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// receive handles a request: an answer to a response, a change of subscriptions, or both.
// An error ends the stream.
func (s *session) receive(req *discoveryv3.DeltaDiscoveryRequest, now time.Time) error {
	g := s.gateway
	g.mu.Lock()
	defer g.mu.Unlock()
	s.changes++
	if s.node == "" {
		// In the first request only; for people only.
		s.node = bounded(req.GetNode().GetId())
		if v := req.GetNode().GetUserAgentBuildVersion().GetVersion(); v != nil {
			s.envoy = fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
		}
	}
	t, ok := g.server.typeOf(req.GetTypeUrl())
	if !ok {
		g.server.log.Warn("proxy subscribes to a type that is not served",
			"gateway", g.name.String(), "session", s.id, "type", bounded(req.GetTypeUrl()))
		return nil
	}
	if err := s.admits(t, req); err != nil {
		return err
	}
	if req.GetResponseNonce() != "" {
		s.answered(req, now)
	}
	s.subscribe(t, req, now)
	s.checkSynced(now)
	s.caughtUp()
	return nil
}

// subscribe changes what the proxy is sent of a type.
func (s *session) subscribe(t envoy.Type, req *discoveryv3.DeltaDiscoveryRequest, now time.Time) {
	y := &s.types[t]
	names, has := req.GetResourceNamesSubscribe(), req.GetInitialResourceVersions()
	first := !y.started
	y.started = true

	wildcard := first && y.hasWildcard && len(names) == 0
	for _, name := range names {
		switch {
		case name == "":
		case name == "*" && y.hasWildcard:
			wildcard = true
		case name == "*":
			// A client that sends this as its SNI makes Envoy ask for it. It is a name like any
			// other, and there is no such resource.
			y.deny(name)
		default:
			s.subscribeTo(Ref{t, name}, has, now)
		}
	}
	if y.clientNames != nil && first && len(names) == 0 && len(has) == 0 {
		// This is how Envoy writes "*" in its first request for a type.
		y.deny("*")
	}
	if wildcard && !y.wildcard {
		for name := range s.gateway.entries[t] {
			s.found(Ref{t, name}) // of which a bit says that the proxy has asked for it by name
		}
		y.wildcard = true
		y.owed = len(has) == 0
		for name, version := range has {
			if r := s.record(Ref{t, name}); r.sent == "" {
				r.sent, r.acked = version, version
			}
		}
		s.removeLeftovers(t)
		s.markType(t, now)
	}
	for _, name := range req.GetResourceNamesUnsubscribe() {
		s.unsubscribeFrom(Ref{t, name})
	}
	if first && t == envoy.Listeners {
		s.resumed = len(has) > 0
	}
	if first && t == envoy.Routes {
		s.namedRoutes = now
		s.notifyAfter(naming)
	}
}

// subscribeTo subscribes to a name.
func (s *session) subscribeTo(ref Ref, has map[string]string, now time.Time) {
	if s.isMadeUp(ref, has) {
		s.types[ref.Type].deny(ref.Name)
		return
	}
	s.noteSpelling(ref)
	delete(s.types[ref.Type].denied, ref.Name)
	r := s.record(ref)
	// Endpoints are sent with their cluster, before the proxy asks for them. If it has
	// answered them before it asks, it has not used them.
	coming := !r.subscribed && r.nonce != 0 && !r.early
	r.subscribed, r.early = true, false
	version, had := has[ref.Name]
	switch {
	case coming:
		s.mark(ref, changed, now)
	case had && version != "" && r.sent == "":
		r.sent, r.acked = version, version
		s.mark(ref, changed, now)
		if e := s.gateway.entries[ref.Type][ref.Name]; e != nil && e.want.Carries() != nil {
			s.gateway.server.reports.add(s.gateway)
		}
	default:
		s.mark(ref, asked, now)
	}
}

// unsubscribeFrom ends the subscription to a name: the proxy drops the resource.
func (s *session) unsubscribeFrom(ref Ref) {
	y := &s.types[ref.Type]
	r := s.found(ref)
	if r == nil {
		return
	}
	r.subscribed = false
	if y.wildcard {
		return
	}
	s.supersede(r)
	s.forget(ref)
	y.spelled.remove(ref.Name)
	delete(s.alone, ref)
	delete(s.refused, ref)
}

// answered handles the proxy's answer to a response.
func (s *session) answered(req *discoveryv3.DeltaDiscoveryRequest, now time.Time) {
	nonce, err := strconv.ParseUint(req.GetResponseNonce(), 10, 64)
	f := s.inflight[nonce]
	if err != nil || f == nil {
		return // newer responses have replaced all that it had
	}
	s.land(f)
	s.markAnswered(nonce)
	if e := req.GetErrorDetail(); e != nil {
		s.nack(f, shortened(e.GetMessage(), maxRefusal), now)
		return
	}
	g := s.gateway
	y := &s.types[f.typ]
	for _, res := range f.set {
		r := y.records[res.Name]
		if r == nil || f.nonce < r.first {
			continue
		}
		g.noteCarried(r, res)
		r.acked = res.Version
		y.acked++
		if r.nonce == f.nonce {
			r.nonce = 0
			ref := Ref{f.typ, res.Name}
			delete(s.alone, ref)
			delete(s.refused, ref)
		}
		if !f.filler {
			g.acknowledged(s, res, f.commit, now)
		}
		s.settle(Ref{f.typ, res.Name}, r)
	}
	g.server.metrics.lag.WithLabelValues(y.name).Observe(now.Sub(f.since).Seconds())
	if f.typ == envoy.Listeners { // State has those in force
		g.server.reports.add(g)
	}
}

// markAnswered removes a nonce from those that removals wait for.
func (s *session) markAnswered(nonce uint64) {
	for i, n := range s.unanswered {
		if n == nonce {
			s.unanswered = append(s.unanswered[:i], s.unanswered[i+1:]...)
			return
		}
	}
}
