package main

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	r := &report{}
	r.add(routeEdit, 1000, "cpu_ms", 0.4)
	r.add(routeEdit, 5000, "cpu_ms", 0.5)
	r.add(routeEdit, 20000, "cpu_ms", 0.8)
	r.add(coldStart, 1000, "seconds", 60)
	r.add(endpointChange, 100, "listener_updates", 0)
	r.add(endpointChange, 1000, "listener_updates", 1)
	for _, c := range []struct{ name, shape, metric, told, verdict string }{
		{"a size and a ratio", routeEdit, "cpu_ms", "is 2.00", "**missed** 20,000 over 1,000"},
		{"a size that was not measured", coldStart, "seconds", "≤ 10 at 5,000", ""},
		{"every size", endpointChange, "listener_updates", "≤ 0", "**missed** at 1,000"},
		{"no bar", routeEdit, "latency_p50_ms", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			told, verdict := judge(r, c.shape, c.metric)
			if !strings.Contains(told, c.told) || verdict != c.verdict {
				t.Errorf("told %q, verdict %q; want %q, %q", told, verdict, c.told, c.verdict)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.012345: "0.0123", 0.5: "0.500", 1.5: "1.50", 42.26: "42.3", 1234567: "1,234,567", 999: "999",
	} {
		if got := number(significant(v)); got != want {
			t.Errorf("%v prints as %s, want %s", v, got, want)
		}
	}
}
