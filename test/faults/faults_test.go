package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/fleet"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	crlog.SetLogger(logr.Discard())
	code := apiserver.Shared(m).Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

const (
	routes  = 100
	proxies = 10
)

// onlyRoutes fails if proxies were sent anything but the route table, which all edits are of, or
// have lost something.
func onlyRoutes(t *testing.T, s *fleet.Simulation, clusters int) {
	t.Helper()
	for what := range s.Changed() {
		if !strings.HasPrefix(what, envoy.Routes.String()+"/") {
			t.Errorf("%s was changed", what)
		}
	}
	s.Alike()
	if err := s.Have(envoy.Clusters, clusters); err != nil {
		t.Error(err)
	}
}

// TestAPIServer protects proxies from an API server that is slow, refuses what it is asked, closes
// watches, and has forgotten what they would go on from: edits arrive all the same, nothing else is
// sent to anybody, and statuses are written when they can be.
func TestAPIServer(t *testing.T) {
	t.Parallel()
	s := fleet.Simulate(t, routes)
	s.Grow(proxies)
	s.Settled(fleet.RouteName(routes - 1))
	s.Changed()
	const watch = "watch"
	refusing := func(code int, reason string) fleet.Fault {
		var n atomic.Int32
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get(watch) != "" || strings.Contains(r.URL.Path, "/leases") || n.Add(1)%3 == 0 {
				return false
			}
			if code == http.StatusConflict && r.Method == http.MethodGet {
				return false
			}
			fleet.Refuse(w, code, reason)
			return true
		}
	}
	cut := func() { s.Gate.Cut() }
	for _, f := range []struct {
		name   string
		fault  fleet.Fault
		before func()
	}{
		{"slow", func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get(watch) == "" {
				select {
				case <-time.After(500 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
			return false
		}, nil},
		{"409", refusing(http.StatusConflict, "Conflict"), nil},
		{"429", refusing(http.StatusTooManyRequests, "TooManyRequests"), nil},
		{"500", refusing(http.StatusInternalServerError, "InternalError"), nil},
		{"watches closed", nil, cut},
		{"watches closed and refused for a while", refusing(http.StatusInternalServerError, "InternalError"), cut},
		{"etcd compacted", nil, func() { s.Edits++; s.Edit(fleet.RouteName(8), s.Edits); s.API.Compact(); s.Gate.Cut() }},
	} {
		s.Gate.Break(f.fault)
		for range 3 {
			if f.before != nil {
				f.before()
			}
			s.EditBy(proxies)
		}
		onlyRoutes(t, s, routes)
		s.Gate.Break(nil)
		s.Settled(fleet.RouteName(s.Edits % 7))
		t.Logf("%s: nothing but what was edited has changed", f.name)
	}
}

// TestControllerRestarts protects a fleet from a controller's restart: nothing is sent again, and what
// the fleet is made of is not written again, so that nothing is rolled.
func TestControllerRestarts(t *testing.T) {
	t.Parallel()
	s := fleet.Simulate(t, routes)
	s.Grow(proxies)
	s.Settled(fleet.RouteName(routes - 1))
	written := func() (resourceVersion string) {
		t.Helper()
		var list appsv1.DeploymentList
		s.Until("the fleet is applied", func() error {
			if err := s.List(t.Context(), &list, client.InNamespace(fleet.Namespace)); err != nil {
				return err
			}
			if len(list.Items) != 1 {
				return fmt.Errorf("%d Deployments", len(list.Items))
			}
			return nil
		})
		return list.Items[0].ResourceVersion
	}
	before := written()
	for range 3 {
		s.Changed()
		s.Controller.Kill()
		s.Edit(fleet.RouteName(0), s.Edits+1)
		s.Controller.Run()
		s.Controller.Ready()
		s.Edits++
		s.EditBy(proxies)
		s.Settled(fleet.RouteName(s.Edits % 7))
		onlyRoutes(t, s, routes)
	}
	if after := written(); after != before {
		t.Errorf("the Deployment is of version %s, and was of %s", after, before)
	}
}

// TestLeaderGone protects fleets from the end of the controller that leads, and of all controllers: nothing
// is removed, and the next change arrives.
func TestLeaderGone(t *testing.T) {
	t.Parallel()
	s := fleet.Simulate(t, routes)
	controllers := []*fleet.Controller{s.Controller, s.Start()}
	for i, pod := range s.Pods(fleet.Simulated, proxies) {
		// A Service leads to whichever is there.
		first := s.Dialer(controllers[i%2].XDS, fleet.Simulated, pod)
		then := s.Dialer(controllers[1-i%2].XDS, fleet.Simulated, pod)
		s.Proxies = append(s.Proxies, s.Add(func(ctx context.Context) (net.Conn, error) {
			if conn, err := first(ctx); err == nil {
				return conn, nil
			}
			return then(ctx)
		}))
	}
	s.Until("the proxies have everything", s.Whole)
	s.Settled(fleet.RouteName(routes - 1))
	s.EditBy(proxies)
	s.Changed()
	var deleted atomic.Int32
	s.Gate.Break(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			deleted.Add(1)
		}
		return false
	})
	leads := func(p *fleet.Controller) func() error {
		return func() error {
			if p.Metric("gatehouse_leader") != 1 {
				return errors.New("it doesn't")
			}
			return nil
		}
	}
	for range 2 {
		leader, other := controllers[0], controllers[1]
		if leads(leader)() != nil {
			leader, other = other, leader
		}
		s.Until("one leads", leads(leader))
		leader.Kill()
		s.EditBy(proxies) // before another one leads
		s.Until("the other one leads", leads(other))
		s.EditBy(proxies)
		s.Settled(fleet.RouteName(s.Edits % 7))
		onlyRoutes(t, s, routes)
		leader.Run()
		leader.Ready()
	}
	for _, p := range controllers {
		p.Kill()
	}
	s.Edit(fleet.RouteName(0), s.Edits+1)
	for _, p := range controllers {
		p.Run()
	}
	for _, p := range controllers {
		p.Ready()
	}
	s.Edits++
	s.EditBy(proxies)
	s.Settled(fleet.RouteName(s.Edits % 7))
	onlyRoutes(t, s, routes)
	if n := deleted.Load(); n > 0 {
		t.Errorf("%d objects were deleted", n)
	}
}

// TestBurst protects proxies from 5,000 changes at once: all end with the newest of each, and
// nothing else is sent; one of them stands still for half of it.
func TestBurst(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	s := fleet.Simulate(t, routes)
	s.Grow(proxies)
	s.Settled(fleet.RouteName(routes - 1))
	s.Changed()
	frozen := s.Proxies[proxies-1]
	frozen.Freeze()
	const changes = 5000
	began := time.Now()
	var all errgroup.Group
	for w := range 10 { // each has ten routes, so that the last edit of each is known
		all.Go(func() error {
			for i := range changes / 10 {
				s.Edit(fleet.RouteName(w*10+i%10), 1000+i)
			}
			if w == 0 {
				frozen.Thaw()
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	wrote := time.Since(began)
	s.Edits = 6000
	s.EditBy(proxies)
	t.Logf("%d changes written in %v, in force everywhere %v later", changes, wrote.Round(time.Millisecond), (time.Since(began) - wrote).Round(time.Millisecond))
	onlyRoutes(t, s, routes)
}

// TestProxyCutOff protects everybody else from a proxy whose network is cut, one way and both, and
// the proxy itself: it has what the others have when its network is back.
func TestProxyCutOff(t *testing.T) {
	t.Parallel()
	s := fleet.Simulate(t, routes)
	s.Grow(proxies - 1)
	link := &link{}
	pod := s.Pods(fleet.Simulated, 1)[0]
	s.Proxies = append(s.Proxies, s.Add(link.through(s.Dialer(s.Controller.XDS, fleet.Simulated, pod))))
	s.Until("the proxies have everything", s.Whole)
	s.EditBy(proxies)
	s.Changed()
	for _, ways := range [][]*way{{&link.up}, {&link.down}, {&link.up, &link.down}} {
		for _, w := range ways {
			w.cut()
		}
		for range 5 {
			s.EditBy(proxies - 1)
		}
		for _, w := range ways {
			w.mend()
		}
		s.Until("it has what the others have", func() error {
			if n := s.Proxies[proxies-1].Newest(); n < s.Edits {
				return fmt.Errorf("it has edit %d of %d", n, s.Edits)
			}
			return nil
		})
		onlyRoutes(t, s, routes)
	}
	if n := s.Proxies[0].Streams(); n != 1 {
		t.Errorf("another proxy has had %d connections", n)
	}
}
