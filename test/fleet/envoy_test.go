//go:build linux

package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/test/certs"
	"github.com/gatehouse-dev/gatehouse/test/output"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// TestLikeEnvoy protects what all figures of this package rest on: a simulated proxy asks for what
// a real Envoy asks for, drops what it drops, and acknowledges what it acknowledges.
func TestLikeEnvoy(t *testing.T) {
	t.Parallel()
	c := New(t)
	ports := []int{port.OfTest(t), port.OfTest(t)}
	gateway := c.Gateway("web", ports[0])
	const many = 520 // more than fit into a table that is not divided
	c.Routes(gateway.Name, many)
	controller := c.Start()
	pods := c.Pods(gateway.Name, 2)
	envoy, other := c.startEnvoy(controller, pods[0]), c.simulateOne(controller, pods[1])

	since := [2]int{}
	both := func(what string, wants ...string) {
		t.Helper()
		var said [2][]string
		var turns [2]int
		c.Until(what, func() error {
			for i, r := range []*relay{envoy, other} {
				var answered bool
				if said[i], answered, turns[i] = r.said(since[i]); !answered {
					return fmt.Errorf("%s has not answered everything", []string{"Envoy", "the simulated one"}[i])
				}
				for _, want := range wants {
					if !slices.Contains(said[i], want) {
						return fmt.Errorf("%s has not said %q: %q", []string{"Envoy", "the simulated one"}[i], want, said[i])
					}
				}
			}
			if diff := cmp.Diff(said[0], said[1]); diff != "" {
				return errors.New("they differ (-Envoy +simulated):\n" + diff)
			}
			return nil
		})
		since = turns
	}
	both("start", "Listener takes +"+fmt.Sprintf("http-%d@0.0.0.0", ports[0]), fmt.Sprintf("ClusterLoadAssignment takes +%s/%s:80#b77a2282", Namespace, RouteName(many-1)))

	c.Edit(RouteName(0), 1)
	both("an edit")

	c.Make(c.Route("more", gateway.Name, 0, Nowhere)...)
	both("a new route", "ClusterLoadAssignment asks "+Namespace+"/more:80#b77a2282")

	for _, o := range c.Route("more", gateway.Name, 0, Nowhere) {
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	both("a route that goes", "ClusterLoadAssignment drops "+Namespace+"/more:80#b77a2282")

	certificate := certs.For(Host(RouteName(1)))
	c.Make(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "tls"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: certificate.PEM(), corev1.TLSPrivateKeyKey: certificate.KeyPEM()},
	})
	before := gateway.DeepCopy()
	gateway.Spec.Listeners = append(gateway.Spec.Listeners, gwv1.Listener{
		Name: "https", Port: gwv1.PortNumber(ports[1]), Protocol: gwv1.HTTPSProtocolType,
		TLS: &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{Name: "tls"}}},
	})
	if err := c.Patch(t.Context(), gateway, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	both("a listener with a certificate", "Secret takes +"+Namespace+"/tls")

	controller.Kill()
	controller.Run()
	controller.Ready()
	c.Edit(RouteName(0), 2)
	both("another controller", "Cluster has "+Namespace+"/"+RouteName(0)+":80#b77a2282")
}

// startEnvoy starts a real Envoy in the place of a pod.
func (c *Cluster) startEnvoy(controller *Controller, pod *corev1.Pod) *relay {
	c.Helper()
	binary, err := proxy.Find(c.Context(), proxy.FindOptions{})
	if err != nil {
		c.Fatalf("this test needs the real Envoy: %v", err)
	}
	dir := socketDir(c.T)
	socket := filepath.Join(dir, "xds.sock")
	r := newRelay(c.T, socket, c.Dialer(controller.XDS, "web", pod))
	config, err := proxy.Bootstrap(proxy.BootstrapOptions{
		Gateway: object.Name{Namespace: Namespace, Name: "web"}, XDSSocket: socket, AdminSocket: filepath.Join(dir, "admin.sock"),
	})
	if err != nil {
		c.Fatal(err)
	}
	path := filepath.Join(dir, "bootstrap.json")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		c.Fatal(err)
	}
	log := &output.Buffer{}
	cmd := exec.Command(binary.Path, "-c", path, "--disable-hot-restart", "--concurrency", "1", "--log-level", "warning")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if c.Failed() {
			c.Logf("Envoy:\n%s", log.Tail(40))
		}
	})
	return r
}

// simulateOne starts a simulated proxy in the place of a pod.
func (c *Cluster) simulateOne(controller *Controller, pod *corev1.Pod) *relay {
	c.Helper()
	socket := filepath.Join(socketDir(c.T), "xds.sock")
	r := newRelay(c.T, socket, c.Dialer(controller.XDS, "web", pod))
	f := NewFleet("web")
	c.Cleanup(f.Stop)
	f.Add(func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", socket) })
	return r
}

// socketDir is short enough for a socket.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
