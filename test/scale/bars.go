package main

import (
	"fmt"
	"strconv"
)

// bar is an upper limit. They are for 1,000 routes, and for one replica of the
// controller where they are of a process.
type bar struct {
	figure string
	limit  float64
	unit   string
}

const (
	gatewayWrites   = "status writes of the Gateway while routes are created"
	attachedDelay   = "until attachedRoutes is right, after the last route"
	applyWrites     = "writes after everything is applied again"
	idleWrites      = "writes while nothing happens"
	idleCPU         = "CPU while nothing happens"
	residentMemory  = "resident memory"
	killFailures    = "failed requests while the controller is killed"
	killWrites      = "objects of fleets written after that"
	rolloutFailures = "failed requests while a fleet of two restarts"
)

var bars = []bar{
	{gatewayWrites, 50, ""},
	{attachedDelay, 2, "s"},
	{applyWrites, 0, ""},
	{idleWrites, 0, ""},
	{idleCPU, 0.01, "cores"},
	{residentMemory, 120, "MiB"},
	{killFailures, 0, ""},
	{killWrites, 0, ""},
	{rolloutFailures, 0, ""},
}

// judge prints all figures and fails if one is over its bar.
func (b *bench) judge() error {
	missed := 0
	fmt.Println()
	for _, bar := range bars {
		v, ok := b.figures[bar.figure]
		if !ok {
			continue
		}
		verdict := "ok"
		if v > bar.limit {
			verdict = "MISSED"
			missed++
		}
		number := strconv.FormatFloat(v, 'g', 4, 64)
		fmt.Printf("%-6s  %-56s %8s %-5s (bar %g)\n", verdict, bar.figure, number, bar.unit, bar.limit)
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d bars are missed", missed, len(b.figures))
	}
	return nil
}
