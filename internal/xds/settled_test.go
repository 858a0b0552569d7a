package xds

import (
	"fmt"
	"slices"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// What a proxy has acknowledged costs a bit, and is told, changed and removed as if it had a record.
func TestSettled(t *testing.T) {
	h := start(t)
	const n = 100
	var set []any
	line := "cluster"
	for i := range n {
		name := fmt.Sprintf("c%03d", i)
		set = append(set, cluster(name, "1"))
		line += " +" + name + "=1"
	}
	h.apply(set...)
	p := h.connect()
	p.subscribe(envoy.Clusters)
	p.expect(line)
	p.quiet()
	records := func(want, settled int) {
		t.Helper()
		h.change(func(*Server) {}, func(s *session) {
			y := &s.types[envoy.Clusters]
			if len(y.records) != want || y.settled.n != settled || y.size() != want+settled {
				t.Errorf("%d records and %d bits, want %d and %d", len(y.records), y.settled.n, want, settled)
			}
		})
	}
	records(0, n)
	if s := h.server.Sessions()[0]; s.Wanted != s.Acknowledged || s.Types[0].Resources != n {
		t.Errorf("it is told as %+v", s)
	}
	loaded, _ := h.server.gateways[gw].loadedBy("")
	if n := len(loaded); n == 0 || slices.ContainsFunc(loaded, func(l Loaded) bool { return l.State != LoadedCurrent || l.Has == "" }) {
		t.Errorf("it has %+v", loaded)
	}

	// A change, an addition in the place of a removal, and a refusal.
	h.apply(cluster("c001", "2"), "-cluster/c002")
	p.expect("cluster +c001=2 ?", "cluster -c002 ?")
	records(1, n-2)
	h.apply(cluster("d", "1"), cluster("c002", "3"))
	p.expect("cluster +c002=3 +d=1 ?")
	p.answer()
	p.answer()
	p.answer()
	p.quiet()
	records(0, n+1)
	h.apply(cluster("c003", "bad"))
	p.expect("cluster +c003=bad ! Error adding/updating cluster(s) c003: no", "cluster +c003=1")
	p.quiet()
	records(1, n)
	h.apply(cluster("c003", "4"))
	p.expect("cluster +c003=4")
	p.quiet()
	records(0, n+1)

	// Who connects with all of it is sent nothing, and costs no more.
	has := []*envoy.Resource{cluster("c000", "1"), cluster("c001", "2"), cluster("c002", "3"), cluster("c003", "4"), cluster("d", "1")}
	for i := 4; i < n; i++ {
		has = append(has, cluster(fmt.Sprintf("c%03d", i), "1"))
	}
	again := h.connect()
	again.resume(envoy.Clusters, has...)
	again.quiet()
	records(0, n+1)
}

// A route table is put together once for all proxies that are sent it.
func TestAssembledOnce(t *testing.T) {
	h := start(t)
	h.apply(table("t", "x:1", "y:1"))
	var all []*client
	for range 5 {
		p := h.connect()
		p.subscribe(envoy.Routes, "t")
		p.expect("routes +t=[x:1 y:1]")
		p.quiet()
		all = append(all, p)
	}
	assembled := func() float64 {
		var m dto.Metric
		if err := h.server.metrics.assembled.Write(&m); err != nil {
			t.Fatal(err)
		}
		return m.GetCounter().GetValue()
	}
	before := assembled()
	h.apply(table("t", "x:2", "y:1"))
	for _, p := range all {
		p.expect("routes +t=[x:2 y:1]")
	}
	if n := assembled() - before; n != 1 {
		t.Errorf("it was put together %v times", n)
	}
}
