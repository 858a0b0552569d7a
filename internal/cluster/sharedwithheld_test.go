package cluster

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// A controller that starts anew takes no shared fleet away, and knows whose certificates to renew, while it can't compute
// what a Gateway on it asks for, and while the class is missing.
func TestSharedFleetStaysAfterRestart(t *testing.T) {
	for name, before := range map[string]func(*installed){
		"a row can't be computed": func(in *installed) {
			in.prepare = func(c *Cluster) {
				c.pipeline.Engine.Trip(func(of string, key any) {
					if of == "topology-gateways" && strings.Contains(fmt.Sprint(key), "team/web") {
						panic("told to")
					}
				})
			}
		},
		"the class is missing": func(in *installed) {
			class := &gwv1.GatewayClass{}
			if err := in.client.Get(in.Context(), client.ObjectKey{Name: "shared"}, class); err != nil {
				in.Fatal(err)
			}
			class.Finalizers = nil
			if err := in.client.Update(in.Context(), class); err != nil {
				in.Fatal(err)
			}
			if err := in.client.Delete(in.Context(), class); err != nil {
				in.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := install(t)
			r := in.start()
			in.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: team, name: shared}, spec: {mergeGateways: true}}`,
				`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: shared}, spec: {controllerName: gatehouse.dev/controller,
					parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: team, name: shared}}}`,
				`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web}, spec: {gatewayClassName: shared,
					listeners: [{name: http, port: 80, protocol: HTTP}]}}`)
			fleet := object.SharedFleet("team", "shared")
			known := func(r *replica) string {
				account, ok := r.proxies.(*provisioned).fleets.serviceAccount(fleet)
				return fmt.Sprint(account, ok)
			}
			at := client.ObjectKey(r.proxies.(*provisioned).fleets.places.Name(fleet, "shared"))
			there := func() bool { return in.client.Get(in.Context(), at, &corev1.Service{}) == nil }
			in.until("the fleet is there", there)
			in.until("the settings are kept", func() bool { return strings.Contains(in.memory(), "team/web") })
			accounts := known(r)
			r.end()
			before(in)
			r = in.start()
			in.until("the next replica leads", func() bool { return r.leads.Load() != nil })
			in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: other}, spec: {gatewayClassName: gatehouse,
				listeners: [{name: http, port: 80, protocol: HTTP}]}}`)
			in.until("another Gateway has its fleet", func() bool {
				return in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "other-gatehouse"}, &corev1.Service{}) == nil
			})
			if !there() {
				t.Error("the fleet is gone")
			}
			if now := known(r); now != accounts {
				t.Errorf("the proxies' ServiceAccount is %s, and not %s", now, accounts)
			}
		})
	}
}
