package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/test/output"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// A pod whose Gateway can't be computed has nothing to serve: it isn't ready, so that a rollout goes no further. Once its
// proxy has had a configuration it stays ready, whatever can't be computed then.
func TestStaticReadyWhileWithheld(t *testing.T) {
	binary, err := proxy.Find(t.Context(), proxy.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, server := newStaticCluster(t)
	for i, table := range []string{"topology-gateways", "port-filters"} {
		t.Run(table, func(t *testing.T) {
			s.t = t
			name := fmt.Sprint("gateway-", i)
			s.gateway(name)
			edit := func(port int) {
				t.Helper()
				g := &gwv1.Gateway{}
				s.until("the Gateway is edited", func() bool {
					s.get("ns", name, g)
					g.Spec.Listeners[0].Port = gwv1.PortNumber(port) //nolint:gosec // a port
					return s.Update(t.Context(), g) == nil
				})
			}
			edit(port.OfTest(t))
			dir, err := os.MkdirTemp("", "gh") // t.TempDir is too long for a socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			c := s.prepare(server.Config, Static{
				Gateway: object.Name{Namespace: "ns", Name: name}, Address: netip.MustParseAddr("127.0.0.1"), StateDir: dir, Envoy: binary, Concurrency: 1, DrainTimeout: time.Second,
			}, &output.Buffer{})
			trip := func(tables string) {
				c.pipeline.Engine.Trip(func(of string, key any) {
					if of == tables && strings.Contains(fmt.Sprint(key), name) {
						panic("told to")
					}
				})
			}
			trip(table)
			s.start(c)
			s.until("it says why it isn't ready", func() bool {
				ok, why := c.Ready()
				if ok {
					t.Fatal("it is ready and serves nothing")
				}
				return strings.HasSuffix(why, condition.NoteWithheld())
			})
			trip("")
			edit(port.OfTest(t))
			s.until("it is ready", func() bool { ok, _ := c.Ready(); return ok })
			trip(table)
			edit(port.OfTest(t))
			s.until("the table fails again", func() bool { return c.pipeline.Withheld() != nil })
			if ok, why := c.Ready(); !ok {
				t.Errorf("it is no longer ready: %s", why)
			}
		})
	}
}
