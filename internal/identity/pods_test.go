package identity_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// TestPods protects private keys from whoever has stolen a proxy's: its certificate counts
// from the pod's address only, and as long as the pod runs.
func TestPods(t *testing.T) {
	c := startCluster(t)
	pod := c.pod(t, "ns", "a-1", "a-sa", "a", "192.0.2.1", "2001:db8::1")
	ended := c.pod(t, "ns", "a-2", "a-sa", "a", "192.0.2.2")
	ended.Status.Phase = corev1.PodFailed
	if err := c.client.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	c.pod(t, "ns", "b-1", "b-sa", "b", "192.0.2.3")
	a := object.Name{Namespace: "ns", Name: "a"}
	pods := identity.NewPods(identity.PodsOptions{Client: c.client})
	check := func(when, pod, source, bad string) {
		t.Helper()
		for _, admit := range []xds.Admission{pods.Admit, pods.Again()} {
			err := admit(t.Context(), a, pod, netip.MustParseAddr(source))
			switch {
			case err == nil && bad != "":
				t.Errorf("%s: it is admitted", when)
			case err != nil && (bad == "" || !strings.Contains(err.Error(), bad)):
				t.Errorf("%s: %v, want %q", when, err, bad)
			}
		}
	}
	check("its own address", "a-1", "192.0.2.1", "")
	check("its other address", "a-1", "2001:db8::1", "")
	check("a stolen key", "a-1", "192.0.2.9", "not its address")
	check("another pod's address", "a-1", "192.0.2.2", "not its address")
	check("an ended pod", "a-2", "192.0.2.2", "has ended")
	check("a pod of another Gateway", "b-1", "192.0.2.3", "not of the fleet of Gateway ns/a")
	check("no such pod", "a-3", "192.0.2.1", "does not exist any more")
	anywhere := identity.NewPods(identity.PodsOptions{Client: c.client, AnySource: true})
	if err := anywhere.Admit(t.Context(), a, "a-1", netip.MustParseAddr("192.0.2.9")); err != nil {
		t.Errorf("from any source: %v", err)
	}
	c.delete(t, pod)
	check("a deleted pod", "a-1", "192.0.2.1", "does not exist any more")

	// Without the API server, what runs goes on.
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, admit := range []xds.Admission{pods.Admit, pods.Again()} {
		if err := admit(canceled, a, "a-1", netip.MustParseAddr("192.0.2.9")); err != nil {
			t.Errorf("without the API server: %v", err)
		}
	}
}
