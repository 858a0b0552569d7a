package figures

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Traffic is what a route has on a Gateway in a while, over all of its proxies.
type Traffic struct {
	Of
	Requests  uint64  `json:"requests"`
	PerSecond float64 `json:"requestsPerSecond"`
	// Errors is the share of answers with 5xx, from 0 to 1.
	Errors float64 `json:"errorShare"`
	// Classes are the requests by class of the code: 2xx, or none where there was no answer. Types
	// are those where something went wrong, or the proxy has answered by itself.
	Classes map[string]uint64 `json:"requestsByClass"`
	Types   map[string]uint64 `json:"requestsByErrorType,omitempty"`
	Retries uint64            `json:"retries,omitempty"`
	// Received and Sent are bytes a second, where they are counted.
	Received float64 `json:"requestBytesPerSecond,omitempty"`
	Sent     float64 `json:"responseBytesPerSecond,omitempty"`
	// P50 and P99 are estimates, as Prometheus makes them of buckets. The highest bound stands for
	// all that is longer.
	P50 float64 `json:"p50Seconds"`
	P99 float64 `json:"p99Seconds"`

	bounds  []float64
	buckets []uint64
}

// Longest reports whether a latency is beyond what is told apart.
func (t *Traffic) Longest(seconds float64) bool {
	return len(t.bounds) > 0 && seconds >= t.bounds[len(t.bounds)-1]
}

// A Meter tells traffic from what controllers have counted in all. The zero value is ready.
type Meter struct{ last map[string]reading }

type reading struct {
	at     time.Time
	report Report
	totals map[Of]*Totals
}

// Read takes what each controller says at a time, and returns the traffic since the last call. A
// controller that is new, or has begun anew, is counted from now on.
func (m *Meter) Read(at time.Time, reports map[string]Report) []Traffic {
	if m.last == nil {
		m.last = map[string]reading{}
	}
	sums := map[Of]*Traffic{}
	for who, report := range reports {
		now := reading{at: at, report: report, totals: map[Of]*Totals{}}
		for i := range report.Routes {
			now.totals[report.Routes[i].Of] = &report.Routes[i]
		}
		before, known := m.last[who]
		m.last[who] = now
		if !known || !before.report.Began.Equal(report.Began) {
			continue
		}
		for of, t := range now.totals {
			was := before.totals[of]
			if was == nil {
				was = &Totals{}
			}
			sum := sums[of]
			if sum == nil {
				sum = &Traffic{Of: of, Classes: map[string]uint64{}}
				sums[of] = sum
			}
			sum.add(was, t, at.Sub(before.at).Seconds())
		}
	}
	out := make([]Traffic, 0, len(sums))
	for _, t := range sums {
		if t.Requests > 0 {
			t.finish()
			out = append(out, *t)
		}
	}
	return out
}

// since is 0 where series have gone since then, for want of requests.
func since(before, now uint64) uint64 { return max(now, before) - before }

func (t *Traffic) add(before, now *Totals, seconds float64) {
	var requests uint64
	for class, n := range now.Requests {
		if n := since(before.Requests[class], n); n > 0 {
			t.Classes[class] += n
			requests += n
		}
	}
	t.Requests += requests
	if seconds > 0 {
		t.PerSecond += float64(requests) / seconds
		t.Received += float64(since(before.Received, now.Received)) / seconds
		t.Sent += float64(since(before.Sent, now.Sent)) / seconds
	}
	t.Retries += since(before.Retries, now.Retries)
	for is, n := range now.Errors {
		if n := since(before.Errors[is], n); n > 0 {
			if t.Types == nil {
				t.Types = map[string]uint64{}
			}
			t.Types[is] += n
		}
	}
	if len(now.Latency) != len(now.Bounds)+1 || t.bounds != nil && !slices.Equal(t.bounds, now.Bounds) {
		return // of another version: it can't be added up
	}
	if t.bounds == nil {
		t.bounds, t.buckets = now.Bounds, make([]uint64, len(now.Latency))
	}
	same := slices.Equal(before.Bounds, now.Bounds) && len(before.Latency) == len(now.Latency)
	for i, n := range now.Latency {
		if same {
			n = since(before.Latency[i], n)
		}
		t.buckets[i] += n
	}
}

func (t *Traffic) finish() {
	t.Errors = float64(t.Classes["5xx"]) / float64(t.Requests)
	t.P50, t.P99 = t.quantile(0.5), t.quantile(0.99)
}

// quantile interpolates within a bucket, as histogram_quantile of Prometheus does.
func (t *Traffic) quantile(q float64) float64 {
	var all uint64
	for _, n := range t.buckets {
		all += n
	}
	rank, below, lower := q*float64(all), 0.0, 0.0
	for i, upper := range t.bounds {
		n := float64(t.buckets[i])
		if n > 0 && below+n >= rank {
			return lower + (upper-lower)*(rank-below)/n
		}
		below, lower = below+n, upper
	}
	return lower
}

// An Order is by what routes are sorted.
type Order string

// The orders: the most comes first.
const (
	ByRate   Order = "rate"
	ByErrors Order = "errors"
	ByP99    Order = "p99"
)

// Sort sorts traffic; what is equal, by name.
func Sort(list []Traffic, by Order) {
	slices.SortFunc(list, func(a, b Traffic) int {
		first := 0
		switch by {
		case ByErrors:
			first = cmp.Compare(b.Errors, a.Errors)
		case ByP99:
			first = cmp.Compare(b.P99, a.P99)
		case ByRate:
		}
		return cmp.Or(first, cmp.Compare(b.PerSecond, a.PerSecond), strings.Compare(a.Gateway, b.Gateway),
			strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}
