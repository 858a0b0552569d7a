package xds

import (
	"errors"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// A certificate that outlives its pod is worth nothing: open connections are cut, and no
// others are taken.
func TestPodsAreAdmitted(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{{Gateway: named("ns/a"), Set: []*envoy.Resource{listener("l", "A's")}}})
	cert := h.ca.proxy("ns/a:pod", time.Hour)
	open := h.stream(cert, nil)
	open.expect("listener +l=A's")
	h.mu.Lock()
	h.gone = errors.New("the pod is gone")
	h.mu.Unlock()
	if err := open.ended(); err == nil {
		t.Error("the connection outlives the pod")
	}
	again := h.stream(cert, nil)
	if err := again.ended(); err == nil {
		t.Error("the certificate of a pod that is gone is accepted")
	}
	h.refused(refusedPod, 2)
}
