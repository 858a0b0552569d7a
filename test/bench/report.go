package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse/test/bars"
)

// The shapes: what is done while it is measured.
const (
	coldStart          = "cold-start"
	routeEdit          = "route-edit"
	fileEdit           = "file-edit"
	routeAdd           = "route-add"
	endpointChange     = "endpoint-change"
	routeDelete        = "route-delete"
	addsAndRemovals    = "adds-and-removals"
	toggle             = "toggle"
	reorder            = "reorder"
	insert             = "insert"
	serviceSwap        = "service-swap"
	unrelated          = "unrelated"
	pipelineBuild      = "pipeline-build"
	controlPlaneKilled = "control-plane-killed"
	envoyKilled        = "envoy-killed"
	envoyAlone         = "envoy-alone"
	requestPrice       = "request-price"
	plainEnvoy         = "plain-envoy"
	figuresPrice       = "figures-price"
	listenerSetStart   = "listener-sets-start"
	listenerSetAdd     = "listener-set-add"
	manyRoutes         = "many-routes"
)

var shapes = []string{
	pipelineBuild, coldStart, routeEdit, fileEdit, routeAdd, endpointChange, routeDelete, controlPlaneKilled, envoyKilled, envoyAlone,
	addsAndRemovals, toggle, reorder, insert, serviceSwap, unrelated,
	requestPrice, plainEnvoy, figuresPrice, listenerSetStart, listenerSetAdd, manyRoutes,
}

// result is one figure.
type result struct {
	Shape  string  `json:"shape"`
	Routes int     `json:"routes"`
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
}

// report is the file that the bench writes.
type report struct {
	bars.Origin
	Results []result `json:"results"`
}

func (r *report) add(shape string, routes int, metric string, value float64) {
	r.Results = append(r.Results, result{shape, routes, metric, bars.Significant(value)})
}

// medians adds those of the figures of several reports, which have the same ones in the same order.
func (r *report) medians(of []*report) {
	for i, x := range of[0].Results {
		values := make([]float64, len(of))
		for j, o := range of {
			values[j] = o.Results[i].Value
		}
		slices.Sort(values)
		x.Value = values[len(values)/2]
		r.Results = append(r.Results, x)
	}
}

func (r *report) value(shape string, routes int, metric string) (float64, bool) {
	for _, x := range r.Results {
		if x.Shape == shape && x.Routes == routes && x.Metric == metric {
			return x.Value, true
		}
	}
	return 0, false
}

// markdown prints a row for each metric of each shape, a column for each number
// of routes, and what the bars say.
func (r *report) markdown(w io.Writer) {
	var sizes []int
	metrics := map[string][]string{}
	for _, x := range r.Results {
		if !slices.Contains(sizes, x.Routes) {
			sizes = append(sizes, x.Routes)
		}
		if !slices.Contains(metrics[x.Shape], x.Metric) {
			metrics[x.Shape] = append(metrics[x.Shape], x.Metric)
		}
	}
	slices.Sort(sizes)

	fmt.Fprintf(w, "Commit %s on %s.\n\n| shape | metric |", r.Commit, r.Machine)
	for _, n := range sizes {
		fmt.Fprintf(w, " %s |", thousands(n))
	}
	fmt.Fprintf(w, " bar | |\n|---|---|%s---|---|\n", strings.Repeat("---:|", len(sizes)))
	for _, shape := range shapes {
		for _, metric := range metrics[shape] {
			fmt.Fprintf(w, "| %s | `%s` |", shape, metric)
			for _, n := range sizes {
				if v, ok := r.value(shape, n, metric); ok {
					fmt.Fprintf(w, " %s |", number(v))
				} else {
					fmt.Fprint(w, " |")
				}
			}
			told, verdict := judge(r, shape, metric)
			fmt.Fprintf(w, " %s | %s |\n", told, verdict)
		}
	}
}

func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return thousands(int(v))
	}
	return strconv.FormatFloat(v, 'f', max(0, 3-int(math.Ceil(math.Log10(cmp.Or(math.Abs(v), 1))))), 64)
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
