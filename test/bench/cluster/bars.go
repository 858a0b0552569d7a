package main

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/test/bars"
)

// limits are for one Gateway of Gatehouse and one replica of its controller.
var limits = []struct {
	shape  string
	size   int
	figure string
	bars.Bar
}{
	{propagation, 3000, "mean_ms", bars.Bar{Name: "cluster: 3,000 routes one after another, until served, mean", Unit: "ms", Limit: 18}},
	{propagation, 3000, "last_over_first", bars.Bar{Name: "cluster: 3,000 routes one after another, p50 of the last 500 over the first 500", Limit: 1.3}},
	{propagation, 3000, "wrong_answers", bars.Bar{Name: "cluster: 3,000 routes one after another, wrong answers"}},
	{propagationNew, 3000, "mean_ms", bars.Bar{Name: "cluster: 3,000 routes with a new Service each, until served, mean", Unit: "ms", Limit: 25}},
	{propagationNew, 3000, "last_over_first", bars.Bar{Name: "cluster: 3,000 routes with a new Service each, p50 of the last 500 over the first 500", Limit: 1.3}},
	{propagationNew, 3000, "wrong_answers", bars.Bar{Name: "cluster: 3,000 routes with a new Service each, wrong answers"}},
	{scale, 5000, "controller_cpu_ms", bars.Bar{Name: "cluster: controller CPU of an edit at 5,000 routes, API work included", Unit: "ms", Limit: 3}},
	{scale, 5000, "controller_rss_mib", bars.Bar{Name: "cluster: RSS of the controller at 5,000 routes", Unit: "MiB", Limit: 200}},
}

// judged are the figures of the shapes that ran: of several Gateways the worst. One
// that is absent misses its bar; a run at another size has no bars.
func judged(r *report, ran []string) []bars.Figure {
	var all []bars.Figure
	for _, l := range limits {
		if !slices.Contains(ran, l.shape) {
			continue
		}
		var values []float64
		absent, other := true, false
		for _, m := range r.Measurements {
			if m.Shape != l.shape {
				continue
			}
			if m.Size != l.size {
				other = true
				continue
			}
			if v, ok := m.value(l.figure); ok {
				values, absent = append(values, v), false
			}
		}
		switch {
		case !absent:
			all = append(all, l.Measured(slices.Max(values)))
		case !other:
			all = append(all, l.Absent())
		}
	}
	return all
}
