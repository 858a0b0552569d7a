package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// The turns of figures-price. One connection, so that requests don't wait for one another.
const (
	figuresPairs    = 8
	figuresRounds   = 20   // of a pair
	figuresRequests = 2000 // of each Envoy in a turn
)

// uncounted is the Gateway with parameters that turn figures off.
const uncounted = gatewayManifest + `  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: uncounted}}
---
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayParameters
metadata: {name: uncounted, namespace: bench}
spec: {metrics: {routes: false}}
`

// overUncounted measures what the figures of routes cost a request: of two that run, one counts and one doesn't, and
// both are asked in turns. Of each the best turn counts, since whatever else the machine does only adds to one, and of
// several pairs the median, since where a process has come to lie in memory takes part in all of its turns.
func (b *real) overUncounted(ctx context.Context) error {
	var added, cpu []float64
	for range figuresPairs {
		counts, silent, err := b.figuresPair(ctx)
		if err != nil {
			return err
		}
		added = append(added, 1000*(counts.p50-silent.p50))
		cpu = append(cpu, 100*(counts.cpu/silent.cpu-1))
	}
	b.log.Info("figures", "p50_added_us", added, "cpu_added_percent", cpu)
	b.report.add(figuresPrice, 1, "p50_added_us", middle(added))
	b.report.add(figuresPrice, 1, "envoy_cpu_added_percent", middle(cpu))
	return nil
}

// bestTurn is the least of all turns, in milliseconds.
type bestTurn struct{ p50, cpu float64 }

// figuresPair asks one pair.
func (b *real) figuresPair(ctx context.Context) (counting, uncounting bestTurn, err error) {
	best := [2]bestTurn{{math.Inf(1), math.Inf(1)}, {math.Inf(1), math.Inf(1)}}
	err = b.with(ctx, 1, func(ctx context.Context, counts *standalone, entries []entry) error {
		return b.with(ctx, 1, func(ctx context.Context, silent *standalone, _ []entry) error {
			if err := os.WriteFile(filepath.Join(silent.manifests(), "gateway.yaml"), []byte(uncounted), 0o600); err != nil {
				return err
			}
			var sides [2]*side
			for i, s := range []*standalone{counts, silent} {
				if err := s.start(); err != nil {
					return err
				}
				if err := s.ready(ctx); err != nil {
					return err
				}
				pid, err := s.envoyPID()
				if err != nil {
					return err
				}
				sides[i] = &side{address: s.address(), pid: pid}
			}
			order := []int{0, 1} // who is first in a turn is so every other time
			for range figuresRounds {
				for _, i := range order {
					of := sides[i]
					of.used, of.times = 0, nil
					if err := of.turn(ctx, entries[0].host(), 1, figuresRequests); err != nil {
						return err
					}
					best[i].p50 = min(best[i].p50, milliseconds(percentile(sorted(of.times), .5)))
					best[i].cpu = min(best[i].cpu, milliseconds(of.used))
				}
				slices.Reverse(order)
			}
			return nil
		})
	})
	return best[0], best[1], err
}

// middle is the median.
func middle(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
