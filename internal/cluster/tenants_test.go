package cluster

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// A class that lets in what the platform says.
const guardingBlueprint = `
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayBlueprint
metadata: {name: web}
spec:
  values: {overrides: {allow: [192.0.2.0/24]}, defaults: {note: none}}
  resources:
  - id: addresses
    template:
      apiVersion: gatehouse.dev/v1alpha1
      kind: AuthPolicy
      metadata: {name: "${gateway.metadata.name}-addresses", annotations: {note: "${values.note}"}}
      spec:
        targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: "${gateway.metadata.name}"}]
        overrides: {authorization: {platform: {addresses: {allow: "${values.allow}"}}}}
`

// A tenant who may write Gateways, values, policies and all else in a namespace tries to get a Gateway of
// a class without the policy that the class promises. Until that is there, proxies get nothing.
func TestTenantsKeepTheirGuards(t *testing.T) {
	in := install(t)
	in.apply(withBlueprint...)
	in.apply(guardingBlueprint)
	r := in.start()
	served := func(gateway string) bool {
		info, _ := r.server.Gateway(object.Name{Namespace: "team", Name: gateway})
		return len(info.Resources) > 0
	}
	policy := func(gateway string) *v1alpha1.AuthPolicy {
		o := &v1alpha1.AuthPolicy{}
		if err := in.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: gateway + "-addresses"}, o); err != nil {
			return nil
		}
		return o
	}
	saysOf := func(gateway, text string) func() bool {
		return func() bool {
			o := &gwv1.Gateway{}
			if err := in.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: gateway}, o); err != nil {
				t.Fatal(err)
			}
			for _, c := range o.Status.Conditions {
				if c.Type == string(gwv1.GatewayConditionProgrammed) && strings.Contains(c.Message, text) {
					return true
				}
			}
			return false
		}
	}
	platform := func(gateway string) func() bool {
		return func() bool {
			o := policy(gateway)
			if o == nil || o.Spec.Overrides == nil {
				return false
			}
			rule := o.Spec.Overrides.Authorization["platform"]
			return rule.Addresses != nil && len(rule.Addresses.Allow) == 1 && rule.Addresses.Allow[0] == "192.0.2.0/24"
		}
	}
	unserved := func(gateway, text string) {
		t.Helper()
		in.until(gateway+" says what it lacks", saysOf(gateway, text))
		in.until(gateway+" says what follows", saysOf(gateway, "those that have nothing serve nothing"))
		if served(gateway) {
			t.Errorf("%s is served without its guard", gateway)
		}
	}
	gateway := func(name, metadata string) string {
		return `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: ` + name + metadata + `},
			spec: {gatewayClassName: web, listeners: [{name: http, port: 80, protocol: HTTP}]}}`
	}
	mine := func(name, metadata string) string {
		return `{apiVersion: gatehouse.dev/v1alpha1, kind: AuthPolicy, metadata: {namespace: team, name: ` + name + `-addresses` + metadata + `},
			spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: ` + name + `}], defaults: {authentication: {anyone: {anonymous: {}}}}}}`
	}

	in.apply(gateway("early", ""))
	unserved("early", "the controller may not write objects of the kind AuthPolicy")
	in.allow("blueprint", rbacv1.PolicyRule{APIGroups: []string{"gatehouse.dev"}, Resources: []string{"authpolicies"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}})
	in.until("with the right there is a policy", platform("early"))
	in.until("and the Gateway is served", func() bool { return served("early") })

	// An object with the policy's name, and one that is made to look like the policy.
	in.apply(mine("taken", ""), gateway("taken", ""))
	unserved("taken", "there is one already that is not of this Gateway's blueprint")
	if err := in.client.Delete(t.Context(), policy("taken")); err != nil {
		t.Fatal(err)
	}
	in.until("when it has gone, the policy comes", platform("taken"))
	set := infra.SetID(infra.InventoryName(pipeline.ControllerName, object.Name{Namespace: "team", Name: "forged"}), "gatehouse-system")
	in.apply(mine("forged", `, labels: {"`+infra.PartOfLabel+`": `+set+`, "`+infra.ResourceLabel+`": addresses}, annotations: {"`+infra.GatewayAnnotation+`": team/forged}`), gateway("forged", ""))
	unserved("forged", "rules stand in defaults, in overrides, or beside targetRefs") // the controller can't set it right

	in.apply(mine("joined", ""))
	if err := in.client.Delete(t.Context(), policy("joined")); err != nil {
		t.Fatal(err)
	}
	in.apply(gateway("joined", ""))
	in.until("a Gateway is served with its policy", func() bool { return platform("joined")() && served("joined") })
	in.until("something is added to it", func() bool { // its status may be written meanwhile
		open := policy("joined")
		open.Spec.Overrides.Authorization["mine"] = v1alpha1.Authorization{Addresses: &v1alpha1.AuthAddresses{Allow: []string{"0.0.0.0/0"}}}
		open.ManagedFields = nil
		err := in.client.Update(t.Context(), open)
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	in.until("one to which something is added is no guard", saysOf("joined", "those that have nothing serve nothing"))

	// A Gateway that is made to look like one that a blueprint has made, which has no blueprint itself.
	in.apply(gateway("made", `, labels: {"`+infra.PartOfLabel+`": some}, annotations: {"`+infra.GatewayAnnotation+`": team/early}`))
	unserved("made", "blueprints don't make Gateways that have one")

	// Values of one's own.
	in.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayValues, metadata: {namespace: team, name: valued},
		spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: valued},
		overrides: {allow: {any: thing}}}}`, gateway("valued", ""))
	in.until("values that conflict with the platform's are left out", platform("valued"))
	in.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayValues, metadata: {namespace: team, name: valued},
		spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: valued},
		overrides: {allow: [0.0.0.0/0], note: "${gateway.metadata.namespace}\n  spec: {targetRefs: []}"}}}`)
	in.until("a text of a tenant is a text", func() bool {
		o := policy("valued")
		return o != nil && o.Annotations["note"] == "${gateway.metadata.namespace}\n  spec: {targetRefs: []}"
	})
	if !platform("valued")() {
		t.Error("the platform's values are not in force any more")
	}
	in.until("and the Gateway is served", func() bool { return served("valued") })

	// Taking it away, or changing it.
	if err := in.client.Delete(t.Context(), &v1alpha1.AuthPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "valued-addresses"}}); err != nil {
		t.Fatal(err)
	}
	in.until("it comes back", platform("valued"))
	in.apply(mine("valued", ""))
	in.until("another one in its place is no guard", saysOf("valued", "there is one already that is not of this Gateway's blueprint"))
}
