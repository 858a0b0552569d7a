package identity_test

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/identity/client"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

func TestAttacks(t *testing.T) {
	slow.Skip(t)
	c := startCluster(t)
	h := c.controller(t, identity.Options{})
	a := c.pod(t, "ns", "a-1", "a-sa", "a", "127.0.0.1")
	b := c.pod(t, "ns", "b-1", "b-sa", "b", "127.0.0.1")
	stranger := c.pod(t, "ns", "stranger", "stranger-sa", "a", "127.0.0.1")

	t.Run("tokens", func(t *testing.T) { c.attackByToken(t, h, a, b, stranger) })
	t.Run("requests", func(t *testing.T) { c.attackByRequest(t, h, a) })
	t.Run("connections", func(t *testing.T) { c.attackByConnection(t, h, a) })
	t.Run("xDS", func(t *testing.T) { c.attackByXDS(t, h, a, b) })
	t.Run("flood", func(t *testing.T) { c.attackByFlood(t, h, a) })
	t.Run("from its address", func(t *testing.T) { c.attackFromItsAddress(t, h, a, b) })
}

// in is a controller whose failures are a subtest's.
func (h *controller) in(t *testing.T) *controller {
	return &controller{
		t: t, authority: h.authority, server: h.server, xds: h.xds, log: h.log, api: h.api, ads: h.ads,
		registry: h.registry, fleets: h.fleets,
	}
}

func (c *cluster) attackByFlood(t *testing.T, h *controller, a *corev1.Pod) {
	h = h.in(t)
	good := c.token(t, "ns", "a-sa", a, identity.Audience)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	forged := forge(t, other, c.claims(a, "a-sa", time.Now().Add(time.Hour)))
	before, lines := c.reviews.Load(), strings.Count(h.log.String(), "\n")
	began := time.Now()
	done := make(chan struct{})
	var flood sync.WaitGroup
	defer flood.Wait()
	for i := range 4 {
		flood.Go(func() {
			asker := h.asker(fmt.Sprintf("127.0.1.%d", i))
			for range 250 {
				code, _, err := asker.do(http.MethodPost, client.Path, forged, body(csr(t, other, nil)))
				if err != nil || code == 200 {
					t.Errorf("a bad request gets %d %v", code, err)
				}
			}
		})
	}
	go func() { flood.Wait(); close(done) }()
	asked := 0
	for flooding := true; flooding; {
		if code, answer := h.asker("127.0.0.1").ask(good); code != 200 {
			t.Fatalf("the good request gets %d %s", code, answer)
		}
		asked++
		select {
		case <-done:
			flooding = false
		case <-time.After(20 * time.Millisecond):
		}
	}
	if asked < 5 { // each takes less time than a fifth of the flood
		t.Errorf("beside the flood, %d good requests were answered", asked)
	}
	took := time.Since(began) // what is allowed grows with it
	if n := c.reviews.Load() - before - int64(asked); n > 400+10*int64(took.Seconds()) {
		t.Errorf("1000 bad requests made the API server review %d tokens in %v", n, took)
	}
	if n := strings.Count(h.log.String(), "\n") - lines; n > 200+5*int(took.Seconds()) {
		t.Errorf("1000 bad requests wrote %d lines in %v", n, took)
	}
	if h.counted(apiRefusals, "too-many-requests") == 0 {
		t.Error("nothing was refused for being too much")
	}
	t.Logf("%d good requests in %v; %d reviews", asked, took, c.reviews.Load()-before)
}
