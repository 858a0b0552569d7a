package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// TestBehindStatus protects whoever follows a rollout of a configuration: the Gateway says how
// many proxies have it, and which one doesn't.
func TestBehindStatus(t *testing.T) {
	p := newProvisioned(t)
	p.set(gatewayYAML(`listeners: [` + httpListener + `]`))
	p.set(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: web-gatehouse, ownerReferences: [{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, name: web, uid: u1, controller: true}]}, spec: {type: ClusterIP, clusterIPs: [10.0.0.9]}}`)
	say := func(connected, behind int, why string) {
		p.Update(func(tx *flow.Tx) {
			p.TakeFeedback(tx, object.Name{Namespace: "team", Name: "web"}, xds.State{
				Connected: connected, Listeners: map[string]string{"http-80@0.0.0.0": "1"}, Behind: behind, BehindWhy: why,
			})
		})
	}
	const all = "10.0.0.9 Programmed: A proxy has acknowledged the configuration"
	for _, step := range []struct {
		connected, behind int
		why, want         string
	}{
		{3, 0, "", all},
		{3, 1, "Pod team/p has not answered the newest clusters", all + "; 2 of 3 connected proxies have the newest configuration: Pod team/p has not answered the newest clusters"},
		{2, 0, "", all},
	} {
		say(step.connected, step.behind, step.why)
		if diff := cmp.Diff(step.want, p.told()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
