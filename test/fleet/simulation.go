package fleet

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// Simulation is a fleet of simulated proxies at one controller.
type Simulation struct {
	*Cluster
	*Fleet
	Controller *Controller
	Proxies    []*Proxy
	Edits      int // that have been made
}

// Simulated is the name of its Gateway.
const Simulated = "web"

// Simulate starts a controller with so many routes of a Gateway, without proxies.
func Simulate(t *testing.T, routes int) *Simulation {
	t.Helper()
	s := &Simulation{Cluster: New(t), Fleet: NewFleet(Simulated)}
	s.Gateway(Simulated, 80)
	s.Routes(Simulated, routes)
	s.Controller = s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Grow adds proxies until there are so many, and waits until each has everything.
func (s *Simulation) Grow(n int) {
	s.Helper()
	const atOnce = 50 // as a large rollout has them
	for more := n - len(s.Proxies); more > 0; more = n - len(s.Proxies) {
		for _, pod := range s.Pods(Simulated, min(more, atOnce)) {
			s.Proxies = append(s.Proxies, s.Add(s.Dialer(s.Controller.XDS, Simulated, pod)))
		}
		s.Until("the proxies have everything", s.Whole)
	}
}

// Whole reports whether each proxy has a whole configuration.
func (s *Simulation) Whole() error {
	for i, p := range s.Proxies {
		if !p.Ready() {
			return fmt.Errorf("proxy %d has %d clusters, %d listeners and %d route tables", i, p.Has(envoy.Clusters), p.Has(envoy.Listeners), p.Has(envoy.Routes))
		}
	}
	return s.Err()
}

// EditBy edits a route, and waits until so many proxies have acknowledged it.
func (s *Simulation) EditBy(by int) (edit int) {
	s.Helper()
	s.Edits++
	s.Edit(RouteName(s.Edits%7), s.Edits)
	s.Until("an edit is acknowledged", func() error {
		if n := len(s.Takes(s.Edits)); n < by {
			return fmt.Errorf("%d of %d have", n, by)
		}
		return s.Err()
	})
	return s.Edits
}

// Alike waits until all proxies have the same, in the same versions.
func (s *Simulation) Alike() {
	s.Helper()
	s.Until("all proxies have the same", func() error {
		for t := range envoy.NumTypes {
			first := s.Proxies[0].Versions(t)
			for i, p := range s.Proxies[1:] {
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

// Have says which proxy has not so many resources of a type.
func (s *Simulation) Have(t envoy.Type, n int) error {
	for i, p := range s.Proxies {
		if has := p.Has(t); has != n {
			return fmt.Errorf("proxy %d has %d of %d", i, has, n)
		}
	}
	return s.Err()
}

// Received is how many bytes of resources all proxies have been sent.
func (s *Simulation) Received() (sum int64) {
	for _, p := range s.Proxies {
		sum += p.Received()
	}
	return sum
}

// Settled waits until what a route says of itself is written.
func (s *Simulation) Settled(name string) {
	s.Helper()
	s.Until("the status of "+name+" is written", func() error {
		route := &gwv1.HTTPRoute{}
		if err := s.Get(s.Context(), client.ObjectKey{Namespace: Namespace, Name: name}, route); err != nil {
			return err
		}
		for _, parent := range route.Status.Parents {
			if c := meta.FindStatusCondition(parent.Conditions, string(gwv1.RouteConditionAccepted)); c != nil && c.ObservedGeneration == route.Generation {
				return nil
			}
		}
		return fmt.Errorf("%+v", route.Status)
	})
}
