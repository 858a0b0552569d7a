package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/bars"
)

func TestAbsentFigureMissesItsBar(t *testing.T) {
	figures := judged(map[string]float64{idleWrites: 0, idleCPU: 0.02, gatewayWrites: 7}, []string{"idle"})
	var got []string
	for _, f := range figures {
		got = append(got, f.String())
	}
	want := []string{
		"cluster: writes while nothing happens: 0 (bar 0)",
		"cluster: CPU of a controller while nothing happens: 0.02 cores (bar 0.01)",
		"cluster: resident memory of a controller: not measured (bar 120)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := bars.Missed(figures); err == nil || !strings.Contains(err.Error(), "2 of 3 bars are missed") {
		t.Errorf("got %v", err)
	}
}

func TestEveryScenarioHasBars(t *testing.T) {
	all := names()
	for _, name := range all {
		if !slices.ContainsFunc(limits, func(b bar) bool { return b.scenario == name }) {
			t.Errorf("the scenario %s measures nothing", name)
		}
	}
	for _, b := range limits {
		if !slices.Contains(all, b.scenario) {
			t.Errorf("no scenario %s measures %q", b.scenario, b.figure)
		}
	}
}

func TestAudit(t *testing.T) {
	const log = `{"verb":"update","user":{"username":"other"},"objectRef":{"resource":"httproutes","subresource":"status","name":"a"},"requestReceivedTimestamp":"2026-01-01T00:00:01Z","stageTimestamp":"2026-01-01T00:00:01.5Z","responseStatus":{"code":200}}
{"verb":"update","user":{"username":"ours"},"objectRef":{"resource":"httproutes","subresource":"status","name":"before"},"requestReceivedTimestamp":"2026-01-01T00:00:01Z","stageTimestamp":"2026-01-01T00:00:03Z","responseStatus":{"code":200}}
{"verb":"update","user":{"username":"ours"},"objectRef":{"resource":"httproutes","subresource":"status","name":"refused"},"requestReceivedTimestamp":"2026-01-01T00:00:03Z","stageTimestamp":"2026-01-01T00:00:03.5Z","responseStatus":{"code":409}}
{"verb":"update","user":{"username":"ours"},"objectRef":{"resource":"httproutes","subresource":"status","name":"a"},"requestReceivedTimestamp":"2026-01-01T00:00:04Z","stageTimestamp":"2026-01-01T00:00:05Z","responseStatus":{"code":200}}
{"verb":"patch","user":{"username":"ours"},"objectRef":{"resource":"deployments","name":"kill-gatehouse"},"requestReceivedTimestamp":"2026-01-01T00:00:06Z","stageTimestamp":"2026-01-01T00:00:07Z","responseStatus":{"code":201}}
{"verb":"get","user":{"username":"ours"},"objectRef":{"resource":"secrets","name":"authority"},"requestReceivedTimestamp":"2026-01-01T00:00:08Z","stageTimestamp":"2026-01-01T00:00:08Z","responseStatus":{"code":200}}
{"verb":"watch","user":{"username":"ours"},"objectRef":{"resource":"secrets"},"requestReceivedTimestamp":"2026-01-01T00:00:08Z","stageTimestamp":"2026-01-01T00:00:08Z","responseStatus":{"code":200}}
{"verb":"update","user":{"username":"ours"},"objectRef":{"resource":"leases","name":"leader"},"requestReceivedTimestamp":"2026-01-01T00:00:08Z","stageTimestamp":"2026-01-01T00:00:08Z","responseStatus":{"code":200}}
{"verb":"upd`
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &audit{path: path, user: "ours"}
	all := func(write) bool { return true }
	writes, err := a.writes()
	if n := count(writes, all); err != nil || n != 4 {
		t.Errorf("%v writes (%v), want 4", n, err)
	}
	requests, err := a.requests()
	if n := count(requests, all); err != nil || n != 5 {
		t.Errorf("%v requests (%v), want 5: writes and the read", n, err)
	}
	killed := time.Date(2026, 1, 1, 0, 0, 2, 0, time.UTC)
	for _, c := range []struct {
		name  string
		match func(write) bool
		want  time.Duration
	}{
		{"a status", func(w write) bool { return w.subresource == "status" }, 3 * time.Second},
		{"an object of a fleet", func(w write) bool { return fleetResources[w.resource] && w.of("kill") }, 5 * time.Second},
	} {
		if at, err := a.first(killed, c.match); err != nil || at.Sub(killed) != c.want {
			t.Errorf("%s: %v after the kill (%v), want %v", c.name, at.Sub(killed), err, c.want)
		}
	}
	if at, err := a.first(killed, func(w write) bool { return w.of("one") }); err == nil {
		t.Errorf("what was never written was written at %v", at)
	}
	if err := a.forget(); err != nil {
		t.Fatal(err)
	}
	if writes, err := a.writes(); err != nil || len(writes) > 0 {
		t.Errorf("after forget: %v (%v)", writes, err)
	}
}

// A container's processes are those in the control group of its name, and no others.
func TestProcesses(t *testing.T) {
	for _, container := range []string{"", "0123456789abcdef-no-container"} {
		if pids, err := processes(container); err != nil || len(pids) > 0 {
			t.Errorf("container %q has processes %v (%v)", container, pids, err)
		}
	}
}
