package main

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/test/bars"
)

// bar is the limit of a figure, and the scenario that measures it.
type bar struct {
	scenario string
	figure   string
	limit    float64
	unit     string
}

// Figures of the scenarios.
const (
	gatewayWrites = "status writes of the Gateway while routes are created"
	attachedDelay = "until attachedRoutes is right, after the last route"

	applyWrites = "writes after everything is applied again"

	idleWrites     = "writes while nothing happens"
	idleCPU        = "CPU of a controller while nothing happens"
	residentMemory = "resident memory of a controller"

	killFailures = "every controller killed: failed requests"
	killReady    = "every controller killed: until all are ready again"
	killStatus   = "every controller killed: until a status is written"
	killFleet    = "every controller killed: until an object of a fleet is written"
	killServes   = "every controller killed: until a new route serves"
	killWrites   = "every controller killed: objects of other fleets written"

	leaderFailures = "leader killed for good: failed requests"
	leaderStatus   = "leader killed for good: until a status is written"
	leaderFleet    = "leader killed for good: until an object of a fleet is written"
	leaderServes   = "leader killed for good: until a new route serves"
	leaderWrites   = "leader killed for good: objects of other fleets written"

	rolloutFailures = "failed requests while a fleet of two restarts"

	runsWithOne    = "ten edits, 1 proxy: functions of tables run"
	pushesWithOne  = "ten edits, 1 proxy: responses pushed"
	asksWithOne    = "ten edits, 1 proxy: requests to the API server"
	runsWithMany   = "ten edits, 20 proxies: functions of tables run"
	pushesWithMany = "ten edits, 20 proxies: responses pushed"
	asksWithMany   = "ten edits, 20 proxies: requests to the API server"
)

// limits are for 1,000 routes and two replicas of the controller with its default
// Lease: another replica leads 15 s after the last renewal, and tries every 2 s. A
// container that is killed once starts again in its pod, under the name in the Lease.
var limits = []bar{
	{"routes", gatewayWrites, 50, ""},
	{"routes", attachedDelay, 2, "s"},
	{"apply", applyWrites, 0, ""},
	{"idle", idleWrites, 0, ""},
	{"idle", idleCPU, 0.01, "cores"},
	{"idle", residentMemory, 120, "MiB"},
	{"kill", killFailures, 0, ""},
	{"kill", killReady, 20, "s"},
	{"kill", killStatus, 20, "s"},
	{"kill", killFleet, 20, "s"},
	{"kill", killServes, 20, "s"},
	{"kill", killWrites, 0, ""},
	{"leader", leaderFailures, 0, ""},
	{"leader", leaderStatus, 20, "s"},
	{"leader", leaderFleet, 20, "s"},
	{"leader", leaderServes, 2, "s"},
	{"leader", leaderWrites, 0, ""},
	{"rollout", rolloutFailures, 0, ""},
	{"proxies", runsWithOne, 300, ""},
	{"proxies", pushesWithOne, 10, ""},
	{"proxies", asksWithOne, 20, ""},
	{"proxies", runsWithMany, 300, ""},
	{"proxies", pushesWithMany, 200, ""},
	{"proxies", asksWithMany, 20, ""},
}

// judged are the figures of the scenarios that ran. One that is absent misses its
// bar.
func judged(measured map[string]float64, ran []string) []bars.Figure {
	var all []bars.Figure
	for _, l := range limits {
		if !slices.Contains(ran, l.scenario) {
			continue
		}
		b := bars.Bar{Name: "cluster: " + l.figure, Unit: l.unit, Limit: l.limit}
		if v, ok := measured[l.figure]; ok {
			all = append(all, b.Measured(v))
		} else {
			all = append(all, b.Absent())
		}
	}
	return all
}
