package cluster

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/test/port"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// With five thousand routes a controller says that it isn't ready and lets no proxy in,
// until it has all of them.
func TestReadyWithAllRoutes(t *testing.T) {
	slow.Skip(t)
	const routes = 5000
	in := install(t)
	in.apply(gatewayOf("gatehouse"))
	names := make(chan int)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := range names {
				route := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("r", i)}}
				route.Spec.ParentRefs = []gwv1.ParentReference{{Name: "web"}}
				route.Spec.Hostnames = []gwv1.Hostname{gwv1.Hostname(fmt.Sprintf("h%d.test", i))}
				if err := in.client.Create(t.Context(), route); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range routes {
		names <- i
	}
	close(names)
	group.Wait()

	replicaPorts.Do(func() { xdsPort, apiPort = port.OfTest(t), port.OfTest(t) })
	health := port.OfTest(t)
	ip := "127.77.0." + strconv.Itoa(int(nextReplica.Load())+1) // of the replica to be started
	stop, unready := make(chan struct{}), 0
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			conn, err := net.Dial("tcp", net.JoinHostPort(ip, strconv.Itoa(xdsPort)))
			if err == nil {
				_ = conn.Close()
			}
			open := err == nil
			answer, err := http.Get("http://" + net.JoinHostPort(ip, strconv.Itoa(health)) + "/readyz")
			if err != nil {
				continue
			}
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusServiceUnavailable {
				unready++
				if open {
					t.Error("proxies are let in by a controller that isn't ready")
				}
			}
		}
	})
	r := in.start(func(c *configuration.Configuration) { c.Ports.Health = health })
	n := 0
	for _, item := range view.Of(r.pipeline).Items {
		if item.Kind == "HTTPRoute" {
			n++
		}
	}
	close(stop)
	group.Wait()
	if n != routes {
		t.Errorf("a controller that is ready has %d routes, want %d", n, routes)
	}
	if unready == 0 {
		t.Error("it never said that it isn't ready")
	}
}
