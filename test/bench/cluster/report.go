package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"

	"github.com/gatehouse-dev/gatehouse/test/bars"
)

// Names of shapes.
const (
	attachedRoutes   = "attached-routes"
	propagation      = "propagation"
	propagationNew   = "propagation-new-service"
	propagationChurn = "propagation-during-changes" // a part of scale
	routeChange      = "route-change"
	scale            = "scale"
	listenerSets     = "listenersets"
	failover         = "failover"
)

// order is that of the table.
var order = []string{attachedRoutes, propagation, propagationNew, propagationChurn, routeChange, scale, listenerSets, failover}

// source is what a figure is of.
type source struct {
	Shape   string `json:"shape"`
	Gateway string `json:"gateway"`
	Mode    string `json:"mode"`
	Size    int    `json:"size"` // routes, or ListenerSets
}

func (b *bench) source(shape string, t *target) source {
	sizes := map[string]int{
		attachedRoutes: b.attached, propagation: b.routes, propagationNew: b.routes,
		propagationChurn: b.scale, routeChange: 1, scale: b.scale, listenerSets: b.sets, failover: failoverRoutes,
	}
	return source{Shape: shape, Gateway: t.String(), Mode: b.mode, Size: sizes[shape]}
}

// measurement is all that was measured of one source.
type measurement struct {
	source
	bars.Origin
	Figures []figure  `json:"figures"`
	Samples []float64 `json:"samples_ms,omitempty"` // in their order
}

type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

func (m *measurement) value(name string) (float64, bool) {
	for _, f := range m.Figures {
		if f.Name == name {
			return f.Value, true
		}
	}
	return 0, false
}

// report is the file of results.
type report struct {
	Measurements []*measurement `json:"measurements"`
}

func (r *report) find(from source) *measurement {
	for _, m := range r.Measurements {
		if m.source == from {
			return m
		}
	}
	return nil
}

func (r *report) of(from source) *measurement {
	if m := r.find(from); m != nil {
		return m
	}
	m := &measurement{source: from}
	r.Measurements = append(r.Measurements, m)
	return m
}

func (r *report) add(from source, name string, value float64) {
	m := r.of(from)
	m.Figures = append(m.Figures, figure{name, bars.Significant(value)})
	fmt.Printf("  %s %s: %v\n", from.Gateway, name, bars.Significant(value))
}

// addSamples keeps latencies in their order, and what is said of them.
func (r *report) addSamples(from source, samples []float64) {
	if len(samples) == 0 {
		return
	}
	for _, s := range samples {
		m := r.of(from)
		m.Samples = append(m.Samples, math.Round(s*100)/100)
	}
	sum := 0.0
	for _, s := range samples {
		sum += s
	}
	r.add(from, "mean_ms", sum/float64(len(samples)))
	r.add(from, "p50_ms", quantile(samples, 0.5))
	r.add(from, "p99_ms", quantile(samples, 0.99))
	r.add(from, "max_ms", slices.Max(samples))
	if len(samples) >= 2*window {
		r.add(from, "last_over_first", quantile(samples[len(samples)-window:], 0.5)/quantile(samples[:window], 0.5))
	}
}

// window is how many of the first and of the last samples are compared.
const window = 500

func quantile(samples []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// read returns the results of a file; none if there is no file.
func read(path string) (*report, error) {
	r := &report{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// merge puts what was measured in the place of what r has of the same shapes, Gateways
// and modes, at whatever size.
func (r *report) merge(measured *report, from bars.Origin) {
	for _, m := range measured.Measurements {
		m.Origin = from
		r.Measurements = slices.DeleteFunc(r.Measurements, func(old *measurement) bool {
			return old.Shape == m.Shape && old.Gateway == m.Gateway && old.Mode == m.Mode
		})
		r.Measurements = append(r.Measurements, m)
	}
	slices.SortStableFunc(r.Measurements, func(a, b *measurement) int {
		return slices.Index(order, a.Shape) - slices.Index(order, b.Shape)
	})
}

// conclude keeps what was measured, publishes it, and judges it.
func (b *bench) conclude(from bars.Origin, ran []string, enforce bool) error {
	all, err := read(b.results)
	if err != nil {
		return err
	}
	all.merge(&b.report, from)
	if err := errors.Join(bars.Write(b.results, all), all.publish(b.options)); err != nil {
		return err
	}
	return bars.Judge(os.Stdout, b.record, from, judged(&b.report, ran), enforce)
}
