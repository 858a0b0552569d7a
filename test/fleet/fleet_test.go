package fleet

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	code := apiserver.Shared(m).Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// simulation is a fleet of simulated proxies at one controller.
type simulation struct {
	*Cluster
	*Fleet
	controller *Controller
	proxies    []*Proxy
	edits      int
}

const simulated = "web"

// simulate starts a controller with so many routes of a Gateway, without proxies.
func simulate(t *testing.T, routes int) *simulation {
	t.Helper()
	s := &simulation{Cluster: New(t), Fleet: NewFleet(simulated)}
	s.Gateway(simulated, 80)
	s.Routes(simulated, routes)
	s.controller = s.Start()
	t.Cleanup(s.Stop)
	return s
}

// grow adds proxies until there are so many, and waits until each has everything.
func (s *simulation) grow(n int) {
	s.Helper()
	const atOnce = 50 // as a large rollout has them
	for more := n - len(s.proxies); more > 0; more = n - len(s.proxies) {
		for _, pod := range s.Pods(simulated, min(more, atOnce)) {
			s.proxies = append(s.proxies, s.Add(s.Dialer(s.controller.XDS, simulated, pod)))
		}
		s.Until("the proxies have everything", s.whole)
	}
}

// whole reports whether each proxy has a whole configuration.
func (s *simulation) whole() error {
	for i, p := range s.proxies {
		if !p.Ready() {
			return fmt.Errorf("proxy %d has %d clusters, %d listeners and %d route tables", i, p.Has(envoy.Clusters), p.Has(envoy.Listeners), p.Has(envoy.Routes))
		}
	}
	return s.Err()
}

// edit edits a route, and waits until so many proxies have acknowledged it.
func (s *simulation) edit(by int) (edit int) {
	s.Helper()
	s.edits++
	s.Edit(routeName(s.edits%7), s.edits)
	s.Until("an edit is acknowledged", func() error {
		if n := len(s.Takes(s.edits)); n < by {
			return fmt.Errorf("%d of %d have", n, by)
		}
		return s.Err()
	})
	return s.edits
}

// alike waits until all proxies have the same, in the same versions.
func (s *simulation) alike() {
	s.Helper()
	s.Until("all proxies have the same", func() error {
		for t := range envoy.NumTypes {
			first := s.proxies[0].Versions(t)
			for i, p := range s.proxies[1:] {
				has := p.Versions(t)
				if len(has) != len(first) {
					return fmt.Errorf("proxy %d has %d %ss, the first one %d", i+1, len(has), t, len(first))
				}
				for name, version := range first {
					if has[name] != version {
						return fmt.Errorf("proxy %d has %s %s in version %q, the first one in %q", i+1, t, name, has[name], version)
					}
				}
			}
		}
		return s.Err()
	})
}

// TestFleet protects that a fleet converges, whatever its size: from a start, by edits, additions
// and removals, after another controller, and beside a proxy that is frozen.
func TestFleet(t *testing.T) {
	t.Parallel()
	s := simulate(t, 200)
	s.grow(50)
	s.alike()
	if n := s.proxies[0].Has(envoy.Clusters); n != 200 {
		t.Errorf("a proxy has %d clusters of 200", n)
	}
	for range 3 {
		s.edit(50)
	}
	frozen := s.proxies[49]
	frozen.Freeze()
	s.edit(49)
	s.Make(s.Route("more", simulated, 0, nowhere)...)
	s.edit(49)
	frozen.Thaw()
	s.Until("the frozen one has what the others have", func() error {
		if frozen.Newest() != s.edits {
			return errors.New("it is behind")
		}
		return nil
	})
	s.Until("the new route is everywhere", func() error { return s.have(envoy.Clusters, 201) })
	s.alike()
	for _, o := range s.Route("more", simulated, 0, nowhere) {
		if err := s.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.Until("the route is gone everywhere", func() error { return s.have(envoy.Clusters, 200) })

	received := s.received()
	s.controller.Kill()
	s.controller.Run()
	s.controller.Ready()
	s.Until("all proxies are back", func() error {
		if n := s.controller.Metric("gatehouse_xds_sessions"); n != 50 {
			return fmt.Errorf("%v are connected", n)
		}
		return nil
	})
	if more := s.received() - received; more != 0 {
		t.Errorf("another controller sends %d bytes again", more)
	}
	s.edit(50)
	s.alike()
}

func (s *simulation) have(t envoy.Type, n int) error {
	for i, p := range s.proxies {
		if has := p.Has(t); has != n {
			return fmt.Errorf("proxy %d has %d of %d", i, has, n)
		}
	}
	return s.Err()
}

func (s *simulation) received() (sum int64) {
	for _, p := range s.proxies {
		sum += p.Received()
	}
	return sum
}
