//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/port"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// redisServer is a real one, which may be killed and started again.
type redisServer struct {
	binary, password string
	port             int
	cmd              *exec.Cmd
}

func startRedis(t *testing.T, password string) *redisServer {
	t.Helper()
	r := &redisServer{binary: os.Getenv("GATEHOUSE_REDIS"), password: password, port: port.OfTest(t)}
	if r.binary == "" {
		found, err := exec.LookPath("redis-server")
		if err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal("redis-server is not on PATH: install Debian's redis-server, or name the program by GATEHOUSE_REDIS")
			}
			t.Skip("redis-server is not on PATH")
		}
		r.binary = found
	}
	r.start(t)
	t.Cleanup(func() { r.kill() })
	return r
}

func (r *redisServer) start(t *testing.T) {
	t.Helper()
	r.cmd = exec.Command(r.binary, "--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--save", "", "--dir", os.TempDir(), "--requirepass", r.password)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, siteTimeout, func() error {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port)))
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
}

func (r *redisServer) kill() {
	if r.cmd != nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	}
	r.cmd = nil
}

// TestFleetCountsInRedis protects fleets that are too large for one pod's memory: two pods that
// count, of which each proxy asks another one, let exactly the limit through by a Redis that the
// GatewayClass names. While it is gone nobody counts, as the policy's status says, and it is found again.
func TestFleetCountsInRedis(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	redis := startRedis(t, "a-password")
	f := startCountingFleet(t)
	parameters := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"limits": map[string]any{
		"replicas": int64(2),
		"redis":    map[string]any{"host": "127.0.0.1", "port": int64(redis.port), "secretRef": map[string]any{"name": "redis"}},
	}}}}
	parameters.SetAPIVersion("gatehouse.dev/v1alpha1")
	parameters.SetKind("GatewayParameters")
	parameters.SetNamespace(controllerNamespace)
	parameters.SetName("class")
	if err := f.Create(t.Context(), parameters); err != nil {
		t.Fatal(err)
	}
	class := &gwv1.GatewayClass{}
	eventually(t, siteTimeout, func() error {
		if err := f.Get(t.Context(), client.ObjectKey{Name: "gatehouse"}, class); err != nil {
			return err
		}
		class.Spec.ParametersRef = &gwv1.ParametersReference{
			Group: "gatehouse.dev", Kind: "GatewayParameters", Namespace: new(gwv1.Namespace(controllerNamespace)), Name: "class",
		}
		return f.Update(t.Context(), class)
	})
	eventually(t, siteTimeout, func() error {
		if n := *f.deployment(t, "gatehouse-limits").Spec.Replicas; n != 2 {
			return fmt.Errorf("there are to be %d pods that count", n)
		}
		return nil
	})

	f.programmed(t, metav1.ConditionFalse, "there is no Secret shop/redis with the entry password")
	if err := f.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.in.Namespace, Name: "redis"},
		StringData: map[string]string{"password": redis.password, "other": "not for the pod"},
	}); err != nil {
		t.Fatal(err)
	}
	f.programmed(t, metav1.ConditionFalse, "has no pod that is ready")

	counts := f.deployment(t, "gatehouse-limits")
	var at []string
	var counters []*pod
	for i := range 2 {
		at = append(at, net.JoinHostPort("127.0.0.1", strconv.Itoa(port.OfTest(t))))
		counters = append(counters, f.startPod(t, counts.Spec.Template, fmt.Sprintf("limits-%d", i), f.ports, "--listen="+at[i]))
	}
	for _, c := range counters {
		eventually(t, siteTimeout, c.ready)
	}
	f.available(t, counts, 2)
	proxies := f.proxies(t, at...)
	f.programmed(t, metav1.ConditionTrue, "All rules of the policy are in force")
	f.exactly(t, proxies)

	ctx, end := context.WithCancel(t.Context())
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		for ctx.Err() == nil {
			f.send(t, proxies, 50)
		}
	}()
	defer func() { end(); <-loaded }()
	redis.kill()
	for _, c := range counters[:len(proxies)] {
		eventually(t, siteTimeout, func() error { return failing(c, "1") })
	}
	if got, _ := f.send(t, proxies, 20); got[http.StatusServiceUnavailable] != 20 {
		t.Errorf("while Redis is gone: %v", got)
	}
	for _, c := range counters {
		eventually(t, siteTimeout, func() error {
			if code, text := c.get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "Redis does not answer") {
				return fmt.Errorf("a pod that can't count: %d %s", code, text)
			}
			return nil
		})
	}
	f.available(t, counts, 0)
	f.programmed(t, metav1.ConditionFalse, "has no pod that is ready; if Redis at 127.0.0.1 does not answer")
	redis.start(t)
	for _, c := range counters[:len(proxies)] {
		eventually(t, siteTimeout, func() error { return failing(c, "0") })
	}
	eventually(t, siteTimeout, func() error {
		if got, _ := f.send(t, proxies, 150); got[http.StatusTooManyRequests] == 0 {
			return fmt.Errorf("nothing is counted: %v", got)
		}
		return nil
	})
	for _, c := range counters {
		eventually(t, siteTimeout, c.ready)
	}
	f.available(t, counts, 2)
	f.programmed(t, metav1.ConditionTrue, "All rules of the policy are in force")
	end()
	<-loaded
	for _, p := range proxies { // an Envoy outlives a proxy that is killed
		p.signal(t)
		p.ends(t)
	}
}

// failing checks what a pod that counts says of its Redis.
func failing(c *pod, want string) error {
	if _, text := c.get("/metrics"); !strings.Contains(text, `gatehouse_limits_failing{gateway="shop/web"} `+want) {
		return fmt.Errorf("it does not say that failing is %s", want)
	}
	return nil
}
