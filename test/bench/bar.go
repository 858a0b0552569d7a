package main

import (
	"fmt"
	"strings"
)

// bar is an upper limit for a metric.
type bar struct {
	shape, metric string
	limit         float64
	routes        int // at this number of routes; 0 is at every one
	over          int // if set, the limit is of the ratio of routes over this number
}

// bars are the project's own; bench/README.md says where they come from.
var bars = []bar{
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

	{shape: routeEdit, metric: "wrong_answers"},
	{shape: routeAdd, metric: "wrong_answers"},
	{shape: endpointChange, metric: "wrong_answers"},
	{shape: routeDelete, metric: "wrong_answers"},
	{shape: routeEdit, metric: "listener_updates"},
	{shape: routeAdd, metric: "listener_updates"},
	{shape: endpointChange, metric: "listener_updates"},
	{shape: routeDelete, metric: "listener_updates"},

	{shape: controlPlaneKilled, metric: "failed_requests"},
	{shape: controlPlaneKilled, metric: "sent_bytes", limit: 1000},
	{shape: controlPlaneKilled, metric: "envoy_restarts"},
	{shape: envoyKilled, metric: "seconds", limit: 2},
}

// judge tells a metric's bars and whether they are held. A bar for a size that
// was not measured is told and not judged.
func judge(r *report, shape, metric string) (told, verdict string) {
	var tell, miss []string
	judged := 0
	check := func(b bar, v float64, at string) {
		judged++
		if v > b.limit {
			miss = append(miss, at)
		}
	}
	for _, b := range bars {
		if b.shape != shape || b.metric != metric {
			continue
		}
		limit := "≤ " + number(b.limit)
		switch {
		case b.over != 0:
			at := fmt.Sprintf("%s over %s", thousands(b.routes), thousands(b.over))
			high, ok1 := r.value(shape, b.routes, metric)
			low, ok2 := r.value(shape, b.over, metric)
			if ok1 && ok2 && low > 0 {
				check(b, high/low, at)
				limit += fmt.Sprintf(" (is %.2f)", high/low)
			}
			tell = append(tell, limit+" "+at)
		case b.routes != 0:
			at := "at " + thousands(b.routes)
			if v, ok := r.value(shape, b.routes, metric); ok {
				check(b, v, at)
			}
			tell = append(tell, limit+" "+at)
		default:
			for _, x := range r.Results {
				if x.Shape == shape && x.Metric == metric {
					check(b, x.Value, "at "+thousands(x.Routes))
				}
			}
			tell = append(tell, limit)
		}
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
