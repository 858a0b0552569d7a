package figures

import (
	"math"
	"testing"
	"time"
)

// TestMeter protects that traffic is what has come since the last reading, over all controllers: what
// a controller had counted before it was seen, or before it began anew, is no traffic.
func TestMeter(t *testing.T) {
	t.Parallel()
	began, at := time.Unix(1000, 0), time.Unix(2000, 0)
	of := Of{"infra/edge", "HTTPRoute", "shop", "web"}
	says := func(began time.Time, ok, failed uint64, latency ...uint64) Report {
		return Report{Began: began, Routes: []Totals{{
			Of: of, Requests: map[string]uint64{"2xx": ok, "5xx": failed}, Errors: map[string]uint64{"timeout": failed},
			Bounds: []float64{0.1, 0.2}, Latency: latency,
		}}}
	}
	var m Meter
	if got := m.Read(at, map[string]Report{"a": says(began, 100, 1, 101, 0, 0), "b": says(began, 7, 7, 14, 0, 0)}); len(got) != 0 {
		t.Errorf("traffic at first sight: %+v", got)
	}
	at = at.Add(10 * time.Second)
	got := m.Read(at, map[string]Report{
		"a": says(began, 160, 21, 141, 40, 0),            // 80 in 10 s
		"b": says(began.Add(time.Second), 5, 0, 5, 0, 0), // it has begun anew
		"c": says(began, 1000, 0, 1000, 0, 0),            // it was not seen before
	})
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	r := got[0]
	if r.Of != of || r.Requests != 80 || r.PerSecond != 8 || r.Errors != 0.25 || r.Classes["2xx"] != 60 || r.Types["timeout"] != 20 {
		t.Errorf("%+v", r)
	}
	if math.Abs(r.P50-0.1) > 1e-9 || math.Abs(r.P99-0.198) > 1e-9 || r.Longest(r.P99) {
		t.Errorf("half of the requests below %v s, 99 %% below %v s", r.P50, r.P99)
	}
	// Series that have gone are no traffic, and a moment without any has no row.
	at = at.Add(10 * time.Second)
	if got := m.Read(at, map[string]Report{"a": says(began, 100, 0, 5, 0, 0), "b": says(began.Add(time.Second), 5, 0, 5, 0, 0)}); len(got) != 0 {
		t.Errorf("traffic where there was none: %+v", got)
	}
}

// TestSort protects the orders.
func TestSort(t *testing.T) {
	t.Parallel()
	named := func(name string, rate, errors, p99 float64) Traffic {
		return Traffic{Of: Of{Name: name}, PerSecond: rate, Errors: errors, P99: p99}
	}
	list := []Traffic{named("a", 1, 0.2, 3), named("b", 3, 0, 2), named("c", 2, 0.5, 1), named("d", 3, 0, 1)}
	for by, want := range map[Order]string{ByRate: "bdca", ByErrors: "cabd", ByP99: "abdc"} {
		Sort(list, by)
		got := ""
		for _, r := range list {
			got += r.Name
		}
		if got != want {
			t.Errorf("by %s: %s, not %s", by, got, want)
		}
	}
}
