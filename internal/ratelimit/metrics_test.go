package ratelimit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// gather returns what the server tells, histograms by how often they were observed.
func gather(t *testing.T, s *Server) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(s); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "gatehouse_limits_")
			for _, l := range m.GetLabel() {
				if l.GetName() == "gateway" {
					if l.GetValue() != gatewayName.String() {
						t.Errorf("%s has the gateway %s", f.GetName(), l.GetValue())
					}
					continue
				}
				name += " " + l.GetValue()
			}
			values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// What happened is in the metrics, by limit where it was refused or would have been.
func TestMetrics(t *testing.T) {
	s := newServer(t, NewMemory())
	for range 3 {
		_, _ = s.ShouldRateLimit(t.Context(), check(desc("a", "2/1h"), desc("b", "1/1h", "shadow", "true")))
	}
	_, _ = s.ShouldRateLimit(t.Context(), charge(times(7, desc("t", "5/1h"))))
	_, _ = s.ShouldRateLimit(t.Context(), check())
	want := map[string]float64{
		"checks_total passed": 2, "checks_total refused": 1, "checks_total malformed": 1, "checks_total failed": 0,
		"charges_total": 1, "charged_hits_total": 7, "counts": 3, "evicted_total": 0, "check_seconds": 4,
		"over_total a": 1, "shadowed_total b": 2, "failing": 0,
	}
	if diff := cmp.Diff(want, gather(t, s)); diff != "" {
		t.Error(diff)
	}
}

// However many names proxies say, the series are bounded.
func TestMetricsAreBounded(t *testing.T) {
	s := newServer(t, NewMemory())
	for i := range maxNames + 100 {
		_, _ = s.ShouldRateLimit(t.Context(), check(times(2, desc(fmt.Sprint(i), "1/1h"))))
	}
	series := 0
	values := gather(t, s)
	for name := range values {
		if strings.HasPrefix(name, "over_total") {
			series++
		}
	}
	if series != maxNames+1 || values["over_total "+otherNames] != 100 {
		t.Errorf("%d series, not %d; %v others", series, maxNames+1, values["over_total "+otherNames])
	}
}
