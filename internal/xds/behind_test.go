package xds

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// proxies returns how many proxies have the newest configuration, and how many don't, as the
// metric says.
func (h *harness) proxies() (current, behind float64) {
	h.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(proxyCollector{h.server})
	families, err := registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	value := func(m *dto.Metric, state string) float64 {
		for _, l := range m.GetLabel() {
			if l.GetName() == "state" && l.GetValue() == state {
				return m.GetGauge().GetValue()
			}
		}
		return 0
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			current += value(m, "current")
			behind += value(m, "behind")
		}
	}
	return current, behind
}

// proxiesMayTake says how long each proxy may take to answer before it is behind.
func (h *harness) proxiesMayTake(d time.Duration) {
	h.change(func(s *Server) { s.behindAfter = d }, func(s *session) { s.behindTimer.Reset(d) })
}

// untilProxies waits until so many proxies have the newest configuration, and so many don't.
func (h *harness) untilProxies(current, behind float64) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		c, b := h.proxies()
		if c == current && b == behind {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("%v proxies are current and %v behind, want %v and %v", c, b, current, behind)
		}
	}
}

// Whoever rolls out a configuration learns which proxy does not answer it, and when it has.
func TestProxyBehindIsTold(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p, q := h.connectAll(), h.connectAll()
	h.untilProxies(2, 0)
	h.apply(table("t", "x:2", "y:1"))
	p.expect("routes +t=[x:2 y:1]")
	q.expect("routes +t=[x:2 y:1] ?")
	p.quiet()
	h.proxiesMayTake(10 * time.Millisecond)
	state := h.state("a proxy that is behind", func(s State) bool { return s.Behind == 1 })
	if state.Connected != 2 || !strings.HasSuffix(state.BehindWhy, "has not answered the newest routes for over a minute; see its log") {
		t.Errorf("%d are connected, and %q", state.Connected, state.BehindWhy)
	}
	h.untilProxies(1, 1)
	q.answer()
	h.state("all that have caught up", func(s State) bool { return s.Behind == 0 && s.BehindWhy == "" && s.Connected == 2 })
	h.untilProxies(2, 0)
}

// A proxy that doesn't even ask for listeners is behind: Envoy doesn't while its first
// clusters aren't ready.
func TestProxyThatAsksForNothingIsBehind(t *testing.T) {
	h := start(t)
	h.server.behindAfter = 100 * time.Millisecond
	h.apply(small()...)
	h.connect()
	state := h.state("a proxy that is behind", func(s State) bool { return s.Behind == 1 })
	if !strings.Contains(state.BehindWhy, "has not asked for listener") {
		t.Errorf("%q", state.BehindWhy)
	}
}

// What newer responses have replaced needs no answer: Envoy doesn't give it always.
func TestReplacedResponsesNeedNoAnswer(t *testing.T) {
	h := start(t)
	h.server.behindAfter = time.Hour
	h.apply(small()...)
	p := h.connectAll()
	h.apply(ends("a", "2"))
	p.expect("endpoints +a=2 ?")
	h.apply(ends("a", "3"))
	p.expect("endpoints +a=3")
	p.quiet()
	h.untilProxies(1, 0)
}
