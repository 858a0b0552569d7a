//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/test/port"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// mostWithoutLeader is how long statuses and fleets may stand still when the leader is killed.
const mostWithoutLeader = 15 * time.Second

// TestLeaderKilled protects clients and authors from the death of the controller that leads, by the leader election that
// is the default: the proxy that it served answers all requests meanwhile, and another controller writes statuses in time.
func TestLeaderKilled(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	c := startControllers(t, "../../config/namespace.yaml", "../../config/install.yaml")
	election := configuration.Default().LeaderElection
	var replicas [2]*controller
	var ports [2]controllerPorts
	for i := range replicas {
		ports[i] = freePorts(t)
		replicas[i] = c.run(t, []string{fmt.Sprintf("POD_NAME=controller-%d", i)}, "--config", c.configure(t, fmt.Sprintf("config-%d.yaml", i), map[string]any{
			"ports": ports[i], "infrastructure": map[string]any{"image": "registry.example/gatehouse:test"}, "leaderElection": election,
		}))
		replicas[i].answers(t, ports[i].Health, "/readyz")
		if i == 0 {
			eventually(t, siteTimeout, func() error { return c.accepted(t.Context(), "gatehouse") })
		}
	}
	in := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	at := port.OfTest(t)
	route := func(name string) *gwv1.HTTPRoute {
		return &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: name}, Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: "web"}}},
			Hostnames:       []gwv1.Hostname{gwv1.Hostname(name + ".example")},
			Rules: []gwv1.HTTPRouteRule{{Filters: []gwv1.HTTPRouteFilter{{
				Type:            gwv1.HTTPRouteFilterRequestRedirect,
				RequestRedirect: &gwv1.HTTPRequestRedirectFilter{Hostname: new(gwv1.PreciseHostname("there.example")), StatusCode: new(301)},
			}}}},
		}}
	}
	c.create(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.Namespace}},
		&gwv1.Gateway{ObjectMeta: in, Spec: gwv1.GatewaySpec{GatewayClassName: "gatehouse", Listeners: []gwv1.Listener{
			{Name: "http", Port: gwv1.PortNumber(at), Protocol: gwv1.HTTPProtocolType},
		}}},
		route("before"))
	f := &countingFleet{controllers: c, in: in}
	proxy := f.startPod(t, f.deployment(t, "gatehouse-proxy").Spec.Template, "web-1", ports[0])
	eventually(t, siteTimeout, proxy.ready)
	before := request(t, at)
	before.Host = "before.example"
	ask := func() error { return redirects(&http.Transport{DisableKeepAlives: true}, before) }
	eventually(t, siteTimeout, ask)

	ctx, end := context.WithCancel(t.Context())
	asked, failed := 0, 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			asked++
			if err := ask(); err != nil {
				failed++
				t.Error(err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	defer func() { end(); <-done }()
	if err := replicas[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	after := route("after")
	c.create(t, after)
	eventually(t, 2*siteTimeout, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil {
			return err
		}
		if len(after.Status.Parents) == 0 {
			return fmt.Errorf("nobody has written a status for %s", time.Since(killed))
		}
		return nil
	})
	took := time.Since(killed)
	end()
	<-done
	t.Logf("another controller wrote %s after the leader was killed; of %d requests %d failed", took.Round(10*time.Millisecond), asked, failed)
	if took > mostWithoutLeader {
		t.Errorf("another controller has written after %s, and is to within %s", took, mostWithoutLeader)
	}
	proxy.signal(t)
	proxy.ends(t)
}
