package xds

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// defaultBehindAfter is how long a proxy may take to answer a change before State says that it
// is behind. Envoy answers in milliseconds, and in seconds where its machine is busy.
const defaultBehindAfter = time.Minute

// outstanding returns since when a proxy has not had the newest configuration, and what it
// is that it has not answered; zero where it has all. The gateway's mutex is held.
func (s *session) outstanding() (since time.Time, what string) {
	g := s.gateway
	if !g.loaded {
		return time.Time{}, ""
	}
	var oldest *flight
	for _, f := range s.inflight {
		// What newer responses have replaced needs no answer: Envoy gives none to endpoints
		// that come before it has asked for any.
		if (f.current > 0 || len(f.set) == 0) && (oldest == nil || f.since.Before(oldest.since)) {
			oldest = f
		}
	}
	switch {
	case oldest != nil:
		return oldest.since, "has not answered the newest " + s.types[oldest.typ].name
	case !s.dirty.IsZero():
		return s.dirty, "does not take in what is sent to it"
	}
	for t := range s.types { // Envoy doesn't ask while its first clusters are not ready
		if y := &s.types[t]; y.startup && !y.started {
			return s.connected, "has not asked for " + y.name + ""
		}
	}
	return time.Time{}, ""
}

// checkBehind notes whether the proxy has been behind for long. Unless it has, what it lacks is
// looked at again when it will have.
func (s *session) checkBehind() {
	g := s.gateway
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, here := g.sessions[s]; !here {
		return
	}
	after := g.server.behindAfter
	next := after
	if since, what := s.outstanding(); !since.IsZero() {
		if left := time.Until(since.Add(after)); left > 0 {
			next = left
		} else if s.behind == "" {
			s.behind = fmt.Sprintf("%s %s for over a minute; see its log", s.proxy(), what)
			g.server.reports.add(g)
		}
	}
	s.behindTimer.Reset(next)
}

// caughtUp ends what checkBehind has noted, if the proxy has everything.
func (s *session) caughtUp() {
	if s.behind == "" {
		return
	}
	if since, _ := s.outstanding(); since.IsZero() {
		s.behind = ""
		s.gateway.server.reports.add(s.gateway)
	}
}

// proxy names the proxy, by its certificate where it has one.
func (s *session) proxy() string {
	if s.pod != "" {
		return fmt.Sprintf("Pod %s/%s", s.gateway.name.Namespace, s.pod)
	}
	return "Proxy " + s.node
}

// countBehind adds to a state how many proxies are behind, and why one is: always the same
// one, since each text is an event.
func (g *gateway) countBehind(st *State) {
	for s := range g.sessions {
		if s.behind == "" {
			continue
		}
		st.Behind++
		if st.BehindWhy == "" || s.behind < st.BehindWhy {
			st.BehindWhy = s.behind
		}
	}
}

// proxyCollector exposes how many proxies have the newest configuration, by Gateway.
type proxyCollector struct{ server *Server }

var gatewayProxies = prometheus.NewDesc("gatehouse_xds_gateway_proxies",
	"Connected proxies of a Gateway that have the newest configuration, or are behind it.", []string{"gateway", "state"}, nil)

func (c proxyCollector) Describe(ch chan<- *prometheus.Desc) { ch <- gatewayProxies }

func (c proxyCollector) Collect(ch chan<- prometheus.Metric) {
	for _, name := range c.server.Gateways() {
		sums := map[string]int{"current": 0, "behind": 0}
		for _, g := range c.server.recordsOf(name) {
			current, behind := g.count()
			sums["current"] += current
			sums["behind"] += behind
		}
		for state, n := range sums {
			ch <- prometheus.MustNewConstMetric(gatewayProxies, prometheus.GaugeValue, float64(n), name.String(), state)
		}
	}
}

// count counts the proxies that have the newest configuration, and the others.
func (g *gateway) count() (current, behind int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.sessions {
		if since, _ := s.outstanding(); since.IsZero() {
			current++
		} else {
			behind++
		}
	}
	return current, behind
}
