package identity_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/identity/client"
)

// unborn makes a pod that has no address yet, and its token.
func (c *cluster) unborn(t *testing.T, name string) (*corev1.Pod, string) {
	t.Helper()
	pod := c.pod(t, "ns", name, "a-sa", "a")
	return pod, c.token(t, "ns", "a-sa", pod, identity.Audience)
}

// TestNewPods protects pods that ask before the kubelet has told their address, and
// operators from refusals that mean nothing.
func TestNewPods(t *testing.T) {
	c := startCluster(t)
	h := c.controller(t, identity.Options{})
	refusals := func() (n float64) {
		for _, reason := range []string{"pod-no-address", "foreign-address", "pod-gone"} {
			n += h.counted(apiRefusals, reason)
		}
		return n
	}

	t.Run("gets its certificate when it has an address", func(t *testing.T) {
		h := h.in(t)
		pod, token := c.unborn(t, "a-new")
		answered := make(chan int)
		request := body(csr(t, newKey(t), nil))
		go func() {
			code, _, _ := h.asker("127.0.3.1").do(http.MethodPost, client.Path, token, request)
			answered <- code
		}()
		eventually(t, func() string { return awaited(c.watches.Load() == 0, "nobody waits for the address") })
		pod.Status.Phase = corev1.PodRunning
		if err := c.client.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		select {
		case code := <-answered:
			t.Fatalf("%d before there is an address", code)
		case <-time.After(50 * time.Millisecond):
		}
		pod.Status.PodIP, pod.Status.PodIPs = "127.0.3.1", []corev1.PodIP{{IP: "127.0.3.1"}}
		if err := c.client.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if code := <-answered; code != http.StatusOK {
			t.Errorf("%d with an address", code)
		}
		if n := refusals(); n != 0 {
			t.Errorf("%v refusals of a good pod", n)
		}
		eventually(t, func() string { return awaited(c.watches.Load() != 0, "somebody waits for nobody") })
	})

	t.Run("is refused when its address is another, or it goes", func(t *testing.T) {
		for reason, change := range map[string]func(*corev1.Pod){
			"foreign-address": func(pod *corev1.Pod) {
				pod.Status.PodIP, pod.Status.PodIPs = "127.0.3.2", []corev1.PodIP{{IP: "127.0.3.2"}}
				if err := c.client.Status().Update(t.Context(), pod); err != nil {
					t.Error(err)
				}
			},
			"pod-gone": func(pod *corev1.Pod) { c.delete(t, pod) },
		} {
			h := h.in(t)
			pod, token := c.unborn(t, "a-"+reason)
			h.expectRefusal(apiRefusals, reason, func() {
				request, answered := body(csr(t, newKey(t), nil)), make(chan int)
				go func() {
					code, _, _ := h.asker("127.0.3.3").do(http.MethodPost, client.Path, token, request)
					answered <- code
				}()
				eventually(t, func() string { return awaited(c.watches.Load() == 0, "nobody waits for the address") })
				change(pod)
				if code := <-answered; code != http.StatusForbidden {
					t.Errorf("%s: %d", reason, code)
				}
				eventually(t, func() string { return awaited(c.watches.Load() != 0, "somebody waits for nobody") })
			})
		}
	})

	t.Run("waits no longer than it asks", func(t *testing.T) {
		h := h.in(t)
		_, token := c.unborn(t, "a-impatient")
		ctx, cancel := context.WithCancel(t.Context())
		request, done := body(csr(t, newKey(t), nil)), make(chan struct{})
		go func() {
			defer close(done)
			_, _, _ = h.asker("127.0.3.4").doFor(ctx, http.MethodPost, client.Path, token, request)
		}()
		eventually(t, func() string { return awaited(c.watches.Load() == 0, "nobody waits for the address") })
		began := time.Now()
		cancel()
		<-done
		eventually(t, func() string { return awaited(c.watches.Load() != 0, "somebody waits for nobody") })
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("that took %s", d)
		}
	})

	t.Run("in a flood of them others are answered", func(t *testing.T) {
		h := h.in(t)
		_, token := c.unborn(t, "a-flood")
		good := c.pod(t, "ns", "a-good", "a-sa", "a", "127.0.3.5")
		goodToken := c.token(t, "ns", "a-sa", good, identity.Audience)
		const flood, most = 100, 64
		before := h.counted(apiRefusals, "pod-no-address")
		var group sync.WaitGroup
		for i := range flood {
			request := body(csr(t, newKey(t), nil))
			group.Go(func() {
				code, answer, err := h.asker(fmt.Sprintf("127.0.4.%d", i/10+1)).do(http.MethodPost, client.Path, token, request)
				if err != nil || code != http.StatusForbidden || !strings.Contains(string(answer), "no address yet") {
					t.Errorf("%d %s %v", code, answer, err)
				}
			})
		}
		eventually(t, func() string { return awaited(c.watches.Load() < most, "not all that may wait do") })
		if code, answer := h.asker("127.0.3.5").ask(goodToken); code != http.StatusOK {
			t.Errorf("a pod with an address: %d %s", code, answer)
		}
		if n := c.watches.Load(); n > most {
			t.Errorf("%d wait at a time", n)
		}
		group.Wait()
		if n := h.counted(apiRefusals, "pod-no-address") - before; n != flood {
			t.Errorf("%v are counted, not %d", n, flood)
		}
	})
}

// awaited is a complaint while something is so.
func awaited(still bool, complaint string) string {
	if still {
		return complaint
	}
	return ""
}
