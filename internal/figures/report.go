package figures

import (
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Report is what the proxies that report to one controller have counted of each route since the
// controller began.
type Report struct {
	Began  time.Time `json:"began"`
	Routes []Totals  `json:"routes"`
}

// Totals are what a route has had on a Gateway.
type Totals struct {
	Of
	Requests map[string]uint64 `json:"requests"`         // by class of the code
	Errors   map[string]uint64 `json:"errors,omitempty"` // by their type
	// Last is when a proxy has reported a request last.
	Last     time.Time `json:"lastRequest,omitzero"`
	Retries  uint64    `json:"retries,omitempty"`
	Received uint64    `json:"requestBytes,omitempty"`
	Sent     uint64    `json:"responseBytes,omitempty"`
	// Latency is how many requests took up to each of Bounds, in seconds, and in the end how many
	// took longer.
	Bounds  []float64 `json:"bounds,omitempty"`
	Latency []uint64  `json:"latency,omitempty"`
}

// Of names a route on a Gateway. Kind and names of the route are empty for requests that no route
// matches; the kind is Other beyond the bound of series.
type Of struct {
	Gateway   string `json:"gateway"` // namespace/name
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Report returns the sums by route.
func (s *Sums) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Report{Began: s.Began, Routes: []Totals{}}
	for name, g := range s.gateways {
		out.Routes = g.report(name, out.Routes)
	}
	return out
}

func (g *gateway) report(name object.Name, out []Totals) []Totals {
	at := map[route]int{}
	of := func(r route) *Totals {
		i, known := at[r]
		if !known {
			i, at[r] = len(out), len(out)
			out = append(out, Totals{Of: Of{name.String(), r.kind, r.namespace, r.name}, Requests: map[string]uint64{}})
		}
		return &out[i]
	}
	for r, c := range g.requests {
		t := of(r.route)
		t.Requests[r.class] += c.n
		if r.wrong != "" {
			if t.Errors == nil {
				t.Errors = map[string]uint64{}
			}
			t.Errors[r.wrong] += c.n
		}
	}
	for r, sums := range g.routes {
		t := of(r)
		for _, bound := range sums.latency.bounds {
			t.Bounds = append(t.Bounds, bound/1000)
		}
		t.Latency = append(t.Latency, sums.latency.buckets...)
		t.Last, t.Retries, t.Received, t.Sent = sums.last, sums.retries, sums.received, sums.sent
	}
	return out
}
