package fleet

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/test/bars"
)

var (
	manyProxies = flag.Int("proxies", 0, "simulated proxies; 0 skips what make fleet measures")
	manyRoutes  = flag.Int("routes", 5000, "routes, each with a host, a Service and an EndpointSlice of its own")
	manyEdits   = flag.Int("edits", 30, "edits of a route that are measured")
	profiles    = flag.String("profiles", "", "a directory for the controller's profiles, of CPU during the edits and of memory after them")
	record      = flag.String("record", bars.Scratch, "file of the bars' figures, from the root of the checkout")
	enforced    = bars.Enforced(flag.CommandLine)
)

// few is a fleet whose size must not show in what the API server is asked, nor in what a
// proxy waits for.
const few = 20

var (
	once   = bars.Bar{Name: "simulated fleet: how often a route table is put together for an edit", Limit: 1}
	cpu    = bars.Bar{Name: "simulated fleet: CPU of the controller for an edit", Unit: "ms", Limit: 30}
	delay  = bars.Bar{Name: "simulated fleet: from an edit until a proxy has acknowledged it, p99", Unit: "ms", Limit: 250}
	memory = bars.Bar{Name: "simulated fleet: memory of a controller for a further proxy", Unit: "kB", Limit: 60}
	asked  = bars.Bar{Name: "simulated fleet: requests to the API server for the same changes, 1 and 20 proxies, difference", Unit: "%", Limit: 5}
	others = bars.Bar{Name: "simulated fleet: delay of 19 proxies beside a frozen one over that without, p50", Limit: 1.1}
)

// TestBars holds a controller to its bars: `make fleet`.
func TestBars(t *testing.T) {
	if *manyProxies == 0 {
		t.Skip("make fleet runs it")
	}
	s := Simulate(t, *manyRoutes)
	var figures []bars.Figure
	add := func(b bars.Bar, value float64) { figures = append(figures, b.Measured(value)) }

	s.Grow(1)
	one := s.changes(1)
	s.Grow(few)
	more := s.changes(few)
	t.Logf("requests to the API server for the same changes: %d with 1 proxy, %d with %d", one, more, few)
	add(asked, 100*max(float64(more-one), float64(one-more))/float64(one))

	free := s.delays(few, *manyEdits)
	frozen := s.Proxies[few-1]
	frozen.Freeze()
	beside := s.delays(few-1, *manyEdits)
	frozen.Thaw()
	t.Logf("%d proxies: p50 %v, p99 %v; beside a frozen one p50 %v, p99 %v", few, quantile(free, .5), quantile(free, .99), quantile(beside, .5), quantile(beside, .99))
	add(others, quantile(beside, .5).Seconds()/quantile(free, .5).Seconds())

	small := s.memory()
	began := time.Now()
	s.Grow(*manyProxies)
	s.settle()
	took := time.Since(began)
	big := s.memory()
	further := float64(*manyProxies - few)
	t.Logf("%d more proxies, one after the other in fifties: %v; each was sent %.1f kB; live heap %.1f kB, stacks %.1f kB, resident %.1f kB each",
		*manyProxies-few, took.Round(time.Second), float64(s.Proxies[len(s.Proxies)-1].Received())/1e3,
		(big.heap-small.heap)/further/1e3, (big.stacks-small.stacks)/further/1e3, (big.resident-small.resident)/further/1e3)
	add(memory, (big.heap-small.heap+big.stacks-small.stacks)/further/1e3)

	// What connected proxies cost by themselves is not the edit's.
	idle, since := s.Controller.Metric("process_cpu_seconds_total"), time.Now()
	time.Sleep(5 * time.Second)
	rate := (s.Controller.Metric("process_cpu_seconds_total") - idle) / time.Since(since).Seconds()
	t.Logf("at rest: %.4f cores", rate)

	sent := func() float64 { return s.Controller.Metric("gatehouse_xds_pushed_bytes_total") }
	s.profile("cpu", fmt.Sprintf("/debug/pprof/profile?seconds=%d", 8))
	put := func() float64 { return s.Controller.Metric("gatehouse_xds_assembled_total") }
	assembled, bytes := put(), sent()
	used, since := s.Controller.Metric("process_cpu_seconds_total"), time.Now()
	all := s.delays(*manyProxies, *manyEdits)
	spent := s.Controller.Metric("process_cpu_seconds_total") - used - rate*time.Since(since).Seconds()
	edits := float64(*manyEdits)
	add(once, (put()-assembled)/edits)
	t.Logf("an edit: %.1f ms of CPU, %.0f bytes sent; acknowledged p50 %v, p99 %v, last %v",
		1e3*spent/edits, (sent()-bytes)/edits, quantile(all, .5), quantile(all, .99), quantile(all, 1))
	add(cpu, 1e3*spent/edits)
	add(delay, quantile(all, .99).Seconds()*1e3)
	s.profile("heap", "/debug/pprof/heap?gc=1")

	t.Chdir("../..")
	if err := bars.Judge(os.Stdout, *record, bars.Here(t.Context()), figures, *enforced); err != nil {
		t.Error(err)
	}
}

// changes makes a fixed set of changes, one after the other, and returns what they ask of the API server.
func (s *Simulation) changes(proxies int) int64 {
	s.Helper()
	s.settle()
	before := s.Gate.Requests()
	for range 40 {
		s.EditBy(proxies)
		s.Settled(RouteName(s.Edits % 7)) // statuses of edits that come together are written together
	}
	for i := range 5 {
		s.Make(s.Route(fmt.Sprintf("more-%d", i), Simulated, 0, Nowhere)...)
		s.Until("the route is everywhere", func() error { return s.Have(envoy.Clusters, *manyRoutes+i+1) })
	}
	for i := range 5 {
		for _, o := range s.Route(fmt.Sprintf("more-%d", i), Simulated, 0, Nowhere) {
			if err := s.Delete(s.Context(), o); client.IgnoreNotFound(err) != nil {
				s.Fatal(err)
			}
		}
		s.Until("the route is gone everywhere", func() error { return s.Have(envoy.Clusters, *manyRoutes+4-i) })
	}
	s.settle()
	return s.Gate.Requests() - before
}

// delays are from each of some edits until a proxy has acknowledged it, of all proxies.
func (s *Simulation) delays(proxies, edits int) (all []time.Duration) {
	s.Helper()
	for range edits {
		began := time.Now()
		for _, at := range s.Takes(s.EditBy(proxies)) {
			all = append(all, at.Sub(began))
		}
	}
	slices.Sort(all)
	return all
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))].Round(10 * time.Microsecond)
}

// settle waits until nothing more is sent to proxies, nor written.
func (s *Simulation) settle() {
	s.Helper()
	var last [2]float64
	since := time.Now()
	s.Until("nothing more is sent", func() error {
		if now := [2]float64{s.Controller.Metric("gatehouse_xds_pushes_total"), float64(s.Gate.Writes())}; now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return fmt.Errorf("%v responses and writes", last)
		}
		return s.Err()
	})
}

// usage is what the controller has in memory, in bytes.
type usage struct{ heap, stacks, resident float64 }

// memory looks after what is garbage is gone.
func (s *Simulation) memory() usage {
	s.Helper()
	for range 2 {
		if _, err := s.Controller.page(s.Controller.admin, "/debug/pprof/heap?gc=1"); err != nil {
			s.Fatal(err)
		}
	}
	return usage{
		s.Controller.Metric("go_memstats_heap_alloc_bytes"), s.Controller.Metric("go_memstats_stack_inuse_bytes"),
		s.Controller.Metric("process_resident_memory_bytes"),
	}
}

// profile writes a profile of the controller; one of CPU while the test goes on.
func (s *Simulation) profile(name, path string) {
	if *profiles == "" {
		return
	}
	take := func() {
		text, err := s.Controller.page(s.Controller.admin, path)
		if err == nil {
			err = os.WriteFile(filepath.Join(*profiles, name), text, 0o600)
		}
		if err != nil {
			s.Error(err)
		}
	}
	if name != "cpu" {
		take()
		return
	}
	done := make(chan struct{})
	go func() { defer close(done); take() }()
	s.Cleanup(func() { <-done })
}
