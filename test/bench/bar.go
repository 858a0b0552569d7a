package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/test/bars"
)

// bar is an upper limit for a metric.
type bar struct {
	shape, metric string
	limit         float64
	routes        int // at this number of routes; 0 is at every one
	over          int // if set, the limit is of the ratio of routes over this number

	part string // of the project, whose file has the figure; part 4 if empty
	name string // in that file; made of the above if empty
}

// parts are those with bars of the bench.
var parts = []string{"04", "05b", "07", "09"}

func (b bar) of(part string) bool { return cmp.Or(b.part, parts[0]) == part }

// limits are the project's own; bench/README.md says where they come from.
var limits = []bar{
	{shape: pipelineBuild, metric: "heap_kib_per_route", limit: 10, routes: 5000},

	{shape: coldStart, metric: "seconds", limit: 10, routes: 5000},
	{shape: coldStart, metric: "envoy_rss_mb", limit: 260, routes: 5000},
	{shape: coldStart, metric: "envoy_rss_connected_mb", limit: 260, routes: 5000},
	{shape: coldStart, metric: "heap_kib_per_route", limit: 10, routes: 5000},

	{shape: routeEdit, metric: "cpu_ms", limit: 1, routes: 5000},
	{shape: routeEdit, metric: "alloc_kb", limit: 150, routes: 5000},
	{shape: endpointChange, metric: "cpu_ms", limit: 0.3, routes: 5000},
	{shape: endpointChange, metric: "xds_bytes", limit: 1000, routes: 5000},
	{shape: endpointChange, metric: "sent_bytes", limit: 1000, routes: 5000},
	{shape: endpointChange, metric: "tables_touched", limit: 0},

	{shape: routeEdit, metric: "cpu_ms", limit: 1.5, routes: 20000, over: 1000},
	{shape: routeAdd, metric: "cpu_ms", limit: 1.5, routes: 20000, over: 1000},
	{shape: endpointChange, metric: "cpu_ms", limit: 1.5, routes: 20000, over: 1000},
	{shape: routeDelete, metric: "cpu_ms", limit: 1.5, routes: 20000, over: 1000},

	{shape: fileEdit, metric: "latency_p50_ms", limit: 60, routes: 5000, part: "07"},
	{shape: fileEdit, metric: "latency_p99_ms", limit: 150, routes: 5000, part: "07"},

	{shape: routeEdit, metric: "wrong_answers"},
	{shape: fileEdit, metric: "wrong_answers", part: "07"},
	{shape: routeAdd, metric: "wrong_answers"},
	{shape: endpointChange, metric: "wrong_answers"},
	{shape: routeDelete, metric: "wrong_answers"},
	{shape: routeEdit, metric: "listener_updates"},
	{shape: routeAdd, metric: "listener_updates"},
	{shape: endpointChange, metric: "listener_updates"},
	{shape: routeDelete, metric: "listener_updates"},

	{shape: addsAndRemovals, metric: "wrong_answers", part: "07"},
	{shape: toggle, metric: "wrong_answers", part: "07"},
	{shape: reorder, metric: "wrong_answers", part: "07"},
	{shape: insert, metric: "wrong_answers", part: "07"},
	{shape: serviceSwap, metric: "wrong_answers", part: "07"},
	{shape: unrelated, metric: "wrong_answers", part: "07"},
	{shape: unrelated, metric: "p999_over_quiet", limit: 2, routes: 20000, part: "07"},

	{
		shape: routeEdit, metric: "latency_p50_ms", limit: 8, routes: 100,
		part: "07", name: "route edited at 100 routes, file renamed into place until served, p50",
	},
	{
		shape: routeEdit, metric: "latency_p99_ms", limit: 30, routes: 100,
		part: "07", name: "route edited at 100 routes, file renamed into place until served, p99",
	},
	{shape: routeEdit, metric: "latency_p50_ms", limit: 10, routes: 5000, part: "07", name: "route edited at 5,000 routes, p50"},
	{shape: routeEdit, metric: "latency_p99_ms", limit: 30, routes: 5000, part: "07", name: "route edited at 5,000 routes, p99"},
	{shape: routeEdit, metric: "latency_p50_ms", limit: 12, routes: 20000, part: "07", name: "route edited at 20,000 routes, p50"},
	{shape: routeEdit, metric: "latency_p99_ms", limit: 30, routes: 20000, part: "07", name: "route edited at 20,000 routes, p99"},
	{shape: routeEdit, metric: "sent_bytes", limit: 6000, routes: 5000, part: "07", name: "route edited at 5,000 routes: bytes to Envoy"},
	{
		shape: routeEdit, metric: "cpu_ms", limit: 1.3, routes: 20000, over: 1000,
		part: "07", name: "control-plane CPU of an edit, 20,000 over 1,000 routes",
	},
	{shape: coldStart, metric: "seconds", limit: 10, routes: 20000, part: "07", name: "cold start, 20,000 routes"},
	{
		shape: coldStart, metric: "envoy_rss_mb", limit: 480, routes: 20000,
		part: "07", name: "Envoy RSS at 20,000 routes, each with its own cluster, before traffic",
	},

	{shape: controlPlaneKilled, metric: "failed_requests"},
	{shape: controlPlaneKilled, metric: "sent_bytes", limit: 1000},
	{shape: controlPlaneKilled, metric: "envoy_restarts"},
	{shape: envoyKilled, metric: "seconds", limit: 2},
	{shape: envoyKilled, metric: "over_alone", limit: 1.5, routes: 20000},

	{shape: requestPrice, metric: "jwt_added_ms", limit: 0.1, routes: pricedRoutes},
	{shape: requestPrice, metric: "api-key_added_ms", limit: 0.1, routes: pricedRoutes},
	{shape: requestPrice, metric: "password_added_ms", limit: 0.1, routes: pricedRoutes},
	{shape: requestPrice, metric: "session_added_ms", limit: 0.1, routes: pricedRoutes},
	{shape: requestPrice, metric: "addresses_added_ms", limit: 0.1, routes: pricedRoutes},
	{shape: requestPrice, metric: "expression_added_ms", limit: 0.1, routes: pricedRoutes},
	{shape: requestPrice, metric: "local-limit_added_ms", limit: 0.1, routes: pricedRoutes},

	{
		shape: plainEnvoy, metric: "envoy_cpu_us_over_plain", limit: 1.1, routes: 1,
		part: "07", name: "CPU of a request over a plain Envoy's, in turns",
	},
	{
		shape: plainEnvoy, metric: "p99_ms_over_plain", limit: 1.15, routes: 1,
		part: "07", name: "p99 of a request over a plain Envoy's, in turns",
	},

	{
		shape: figuresPrice, metric: "p50_added_us", limit: 10, routes: 1,
		part: "09", name: "price of the figures to a request, p50, on and off in turns",
	},
	{
		shape: figuresPrice, metric: "envoy_cpu_added_percent", limit: 3, routes: 1,
		part: "09", name: "price of the figures to a request, CPU of Envoy, on and off in turns",
	},

	{
		shape: listenerSetStart, metric: "seconds", limit: 15, routes: listenerSets,
		part: "07", name: "2,500 ListenerSets with certificates of their own: cold start until every host serves TLS",
	},
	{
		shape: listenerSetAdd, metric: "process_cpu_ms", limit: 2, routes: listenerSets,
		part: "07", name: "one more of 2,500 ListenerSets: control-plane CPU",
	},
	{
		shape: listenerSetAdd, metric: "sent_bytes", limit: 10_000, routes: listenerSets,
		part: "07", name: "one more of 2,500 ListenerSets: bytes to Envoy",
	},
	{
		shape: listenerSetAdd, metric: "envoy_cpu_ms", limit: 10, routes: listenerSets,
		part: "07", name: "one more of 2,500 ListenerSets: Envoy CPU",
	},
	{
		shape: listenerSetAdd, metric: "dropped_connections", routes: listenerSets,
		part: "07", name: "one more of 2,500 ListenerSets: connections of other hosts dropped",
	},

	{
		shape: manyRoutes, metric: "start_seconds", limit: 30, routes: manyRoutesCount,
		part: "05b", name: "100,000 routes from files: cold start until the last one is served",
	},
	{
		shape: manyRoutes, metric: "first_edit_ms", limit: 100, routes: manyRoutesCount,
		part: "05b", name: "100,000 routes from files: first edit until served",
	},
	{
		shape: manyRoutes, metric: "latency_p50_ms", limit: 8, routes: manyRoutesCount,
		part: "05b", name: "100,000 routes from files: later edits until served, p50",
	},
	{
		shape: manyRoutes, metric: "rss_mb", limit: 1200, routes: manyRoutesCount,
		part: "05b", name: "100,000 routes from files: RSS of the control plane",
	},
	{shape: manyRoutes, metric: "wrong_answers", routes: manyRoutesCount, part: "05b", name: "100,000 routes from files: wrong answers"},
}

// reading is a figure that a bar is for.
type reading struct {
	at    string // what it was measured at
	value float64
}

// readings are those that were measured.
func (b bar) readings(r *report) []reading {
	switch {
	case b.over != 0:
		high, ok1 := r.value(b.shape, b.routes, b.metric)
		low, ok2 := r.value(b.shape, b.over, b.metric)
		if ok1 && ok2 && low > 0 {
			return []reading{{b.at(), high / low}}
		}
		return nil
	case b.routes != 0:
		if v, ok := r.value(b.shape, b.routes, b.metric); ok {
			return []reading{{b.at(), v}}
		}
		return nil
	}
	var all []reading
	for _, x := range r.Results {
		if x.Shape == b.shape && x.Metric == b.metric {
			all = append(all, reading{"at " + thousands(x.Routes), x.Value})
		}
	}
	return all
}

// at tells what a bar is for; empty if it is for every number of routes.
func (b bar) at() string {
	switch {
	case b.over != 0:
		return fmt.Sprintf("%s over %s", thousands(b.routes), thousands(b.over))
	case b.routes != 0:
		return "at " + thousands(b.routes)
	}
	return ""
}

// judge tells a metric's bars and whether they are held. A bar for a size that
// was not measured is told and not judged.
func judge(r *report, shape, metric string) (told, verdict string) {
	var tell, miss []string
	judged := 0
	for _, b := range limits {
		if b.shape != shape || b.metric != metric {
			continue
		}
		var limit strings.Builder
		limit.WriteString("≤ " + number(b.limit))
		for _, x := range b.readings(r) {
			judged++
			if x.value > b.limit && !slices.Contains(miss, x.at) {
				miss = append(miss, x.at)
			}
			if b.over != 0 {
				fmt.Fprintf(&limit, " (is %.2f)", x.value)
			}
		}
		tell = append(tell, strings.TrimSpace(limit.String()+" "+b.at()))
	}
	told = strings.Join(tell, "; ")
	switch {
	case len(miss) > 0:
		return told, "**missed** " + strings.Join(miss, ", ")
	case judged > 0:
		return told, "held"
	default:
		return told, ""
	}
}

// figures are those of a part's bars after a run that was asked for these numbers
// of routes: of a bar for every number of routes, the worst.
func (r *report) figures(part string, routes []int) []bars.Figure {
	var all []bars.Figure
	for _, b := range limits {
		if !b.of(part) {
			continue
		}
		limit := b.bar()
		readings := b.readings(r)
		if len(readings) == 0 || b.routes == 0 && len(readings) < len(routes) {
			all = append(all, limit.Absent())
			continue
		}
		worst := slices.MaxFunc(readings, func(a, b reading) int { return cmp.Compare(a.value, b.value) })
		all = append(all, limit.Measured(worst.value))
	}
	return all
}

// measured leaves out what a part of a run was not asked for.
func measured(figures []bars.Figure) []bars.Figure {
	return slices.DeleteFunc(figures, func(f bars.Figure) bool { return f.Value == nil })
}

// bar is how the file of the bars names this one.
func (b bar) bar() bars.Bar {
	out := bars.Bar{Name: b.shape + " " + b.metric, Limit: b.limit}
	switch {
	case b.over != 0:
		out.Name = cmp.Or(b.name, out.Name+", "+b.at())
		return out // a ratio has no unit
	case b.routes != 0:
		out.Name += " " + b.at()
	}
	out.Name = cmp.Or(b.name, out.Name)
	for _, unit := range []struct{ suffix, unit string }{
		{"_kib_per_route", "KiB"}, {"_ms", "ms"}, {"seconds", "s"}, {"_mb", "MB"}, {"_kb", "kB"}, {"_bytes", "B"},
	} {
		if strings.HasSuffix(b.metric, unit.suffix) {
			out.Unit = unit.unit
			break
		}
	}
	return out
}
