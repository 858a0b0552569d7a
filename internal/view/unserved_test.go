package view

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

const controller = "example.com/controller"

func manifest[T any, P interface {
	*T
	source.Object
}](t *testing.T, text string) source.Object {
	t.Helper()
	o := P(new(T))
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestUnserved protects a person from "not found" where an object exists and a name in it
// is misspelt: no controller writes a status that would tell.
func TestUnserved(t *testing.T) {
	gateway := func(name, class string) source.Object {
		return manifest[gwv1.Gateway](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: shop, name: `+name+`},
		  spec: {gatewayClassName: `+class+`, listeners: [{name: http, port: 80, protocol: HTTP}]}}`)
	}
	class := func(name, controller string) source.Object {
		return manifest[gwv1.GatewayClass](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: `+name+`}, spec: {controllerName: `+controller+`}}`)
	}
	route := func(name, parents string) source.Object {
		return manifest[gwv1.HTTPRoute](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: shop, name: `+name+`},
		  spec: {hostnames: [`+name+`.example], parentRefs: `+parents+`}}`)
	}
	set := func(name, gateway string) source.Object {
		return manifest[gwv1.ListenerSet](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {namespace: shop, name: `+name+`},
		  spec: {parentRef: {name: `+gateway+`}, listeners: [{name: http, port: 81, protocol: HTTP}]}}`)
	}
	all := []source.Object{
		class("ours", controller), class("theirs", "example.com/theirs"),
		gateway("good", "ours"), gateway("foreign", "theirs"), gateway("misspelt", "our"),
		route("a", "[{name: good}, {name: gone}]"), route("b", "[{name: foreign}]"), route("c", "[{name: misspelt}]"), route("d", "[{name: gone}]"),
		route("e", "[{kind: Service, group: '', name: mesh}]"), route("f", "[{kind: ListenerSet, name: orphan}]"),
		route("g", "[{kind: ListenerSet, name: gone}]"), route("h", "[{name: foreign}, {name: gone}]"), route("i", "[{kind: ListenerSet, name: well}]"),
		set("orphan", "gone"), set("stray", "misspelt"), set("well", "good"),
	}
	view := func(problems ...source.Problem) map[string]Summary {
		p := pipeline.New(pipeline.Provisioned(controller, "", nil))
		objects := map[object.Key]source.Object{}
		for _, o := range all {
			objects[source.KeyOf(o)] = o
		}
		p.Apply(source.Batch{Set: all, Problems: map[string][]source.Problem{"cluster": problems}})
		out := map[string]Summary{}
		for _, it := range Live(p, objects, controller, "shop").Items {
			if it.Summary.State != pending {
				out[it.Key()] = it.Summary
			}
		}
		return out
	}
	want := map[string][]string{ // the state, and parts of the message
		"Gateway shop/misspelt":   {"GatewayClassNotFound", `"our", which doesn't exist`, `there is "ours"`, controller},
		"HTTPRoute shop/c":        {"NoMatchingParent", "Gateway shop/misspelt is not served", `"our", which doesn't exist`},
		"HTTPRoute shop/d":        {"NoMatchingParent", "Gateway shop/gone does not exist"},
		"HTTPRoute shop/f":        {"NoMatchingParent", "ListenerSet shop/orphan is not attached", "Gateway shop/gone does not exist"},
		"HTTPRoute shop/g":        {"NoMatchingParent", "ListenerSet shop/gone does not exist"},
		"ListenerSet shop/orphan": {"ParentNotAccepted", "Gateway shop/gone does not exist"},
		"ListenerSet shop/stray":  {"ParentNotAccepted", "Gateway shop/misspelt is not accepted", `"our", which doesn't exist`},
	}
	got := view()
	for key, parts := range want {
		sum, ok := got[key]
		if !ok || sum.OK || sum.State != parts[0] {
			t.Errorf("%s: %+v", key, sum)
		}
		for _, part := range parts[1:] {
			if !strings.Contains(sum.Message, part) {
				t.Errorf("%s says %q, without %q", key, sum.Message, part)
			}
		}
	}
	for key, sum := range got {
		if want[key] == nil {
			t.Errorf("%s, which others serve, says %+v", key, sum)
		}
	}

	// What could not be read is not missing.
	unread := func(k object.Kind) source.Problem {
		return source.Problem{Key: object.Key{Kind: k}, Reason: source.Unread, Message: "not read"}
	}
	if got := view(unread(kind.GatewayClass), unread(kind.Gateway), unread(kind.ListenerSet)); len(got) > 0 {
		t.Errorf("of what is not known it says %v", got)
	}
}

// TestUnservedPolicies protects whoever deleted a Gateway from being sent to a controller that
// runs: a policy that is left over says what it lacks, and one that nobody is concerned with
// waits for nothing.
func TestUnservedPolicies(t *testing.T) {
	policy := func(name, target string) source.Object {
		return manifest[v1alpha1.AuthPolicy](t, `{apiVersion: gatehouse.dev/v1alpha1, kind: AuthPolicy, metadata: {namespace: shop, name: `+name+`, generation: 1},
		  spec: {targetRefs: [`+target+`], authentication: {anyone: {anonymous: {}}}}}`)
	}
	selecting := func(name, selector string) source.Object {
		return manifest[v1alpha1.AuthPolicy](t, `{apiVersion: gatehouse.dev/v1alpha1, kind: AuthPolicy, metadata: {namespace: shop, name: `+name+`, generation: 1},
		  spec: {targetSelectors: [{kind: `+selector+`}], authentication: {anyone: {anonymous: {}}}}}`)
	}
	const gateway, route = `{group: gateway.networking.k8s.io, kind: Gateway, name: `, `{group: gateway.networking.k8s.io, kind: HTTPRoute, name: `
	all := []source.Object{
		manifest[gwv1.GatewayClass](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: ours}, spec: {controllerName: `+controller+`}}`),
		manifest[gwv1.Gateway](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: shop, name: good, labels: {a: good}},
		  spec: {gatewayClassName: ours, listeners: [{name: http, port: 80, protocol: HTTP}]}}`),
		manifest[gwv1.HTTPRoute](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: shop, name: left}, spec: {parentRefs: [{name: gone}]}}`),
		manifest[gwv1.BackendTLSPolicy](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: BackendTLSPolicy, metadata: {namespace: shop, name: tls, generation: 1},
		  spec: {targetRefs: [{group: '', kind: Service, name: nobodys}], validation: {hostname: x.test, wellKnownCACertificates: System}}}`),
		selecting("labels", "Gateway, matchLabels: {a: b}"), selecting("selected", "Gateway, matchLabels: {a: good}"),
		policy("gone", gateway+"gone}"), policy("left", route+"left}"), policy("unanswered", gateway+"good}"), policy("one", gateway+"gone}, "+gateway+"good}"),
	}
	p := pipeline.New(pipeline.Provisioned(controller, "", nil))
	objects := map[object.Key]source.Object{}
	for _, o := range all {
		objects[source.KeyOf(o)] = o
	}
	p.Apply(source.Batch{Set: all})
	got := map[string]Summary{}
	for _, it := range Live(p, objects, controller, "").Items {
		got[it.Key()] = it.Summary
	}
	for key, want := range map[string]Summary{
		"AuthPolicy shop/gone":       {State: "TargetNotFound", Message: "Gateway shop/gone does not exist; create it or correct targetRefs; what it was to guard is not guarded by it"},
		"AuthPolicy shop/labels":     {State: "TargetNotFound", Message: "No Gateway of namespace shop has the labels a=b; label what the policy is for, or correct targetSelectors; what it was to guard is not guarded by it"},
		"AuthPolicy shop/selected":   {State: pending, Message: "the controller has not answered: see that it runs"},
		"AuthPolicy shop/left":       {State: "TargetNotFound", Message: "HTTPRoute shop/left is not served: " + got["HTTPRoute shop/left"].Message},
		"AuthPolicy shop/unanswered": {State: pending, Message: "the controller has not answered: see that it runs"},
		"AuthPolicy shop/one":        {State: pending, Message: "the controller has not answered: see that it runs"},
		"BackendTLSPolicy shop/tls":  {State: unused, OK: true, Message: "no route of a Gateway refers to what the policy targets"},
	} {
		if sum := got[key]; sum.State != want.State || sum.OK != want.OK || sum.Message != want.Message {
			t.Errorf("%s: %q, %v, %q; want %q, %v, %q", key, sum.State, sum.OK, sum.Message, want.State, want.OK, want.Message)
		}
	}
}

// TestAbandoned protects whoever uninstalled Gatehouse from rows that go on to say that all is
// well: a status stays when its writer is gone. A controller that serves a Gateway though its
// class is gone says so itself.
func TestAbandoned(t *testing.T) {
	const status = `{observedGeneration: 0, lastTransitionTime: "2026-01-01T00:00:00Z", message: "", `
	objects := map[object.Key]source.Object{}
	all := func(accepted string) (out []source.Object) {
		gateway := manifest[gwv1.Gateway](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: shop, name: web, uid: u},
		  spec: {gatewayClassName: gone, listeners: [{name: http, port: 80, protocol: HTTP}]}, status: {
		  conditions: [`+status+accepted+`}, `+status+`type: Programmed, status: "True", reason: Programmed}],
		  listeners: [{name: http, attachedRoutes: 1, supportedKinds: [], conditions: [`+status+`type: Programmed, status: "True", reason: Programmed}]}]}}`)
		route := manifest[gwv1.HTTPRoute](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: shop, name: web}, spec: {parentRefs: [{name: web}]},
		  status: {parents: [{parentRef: {name: web}, controllerName: `+controller+`, conditions: [`+status+`type: Accepted, status: "True", reason: Accepted}]}]}}`)
		former := manifest[corev1.Service](t, `{apiVersion: v1, kind: Service, metadata: {namespace: shop, name: web-gone,
		  annotations: {gatehouse.dev/gateway: shop/web, gatehouse.dev/class: gone, gatehouse.dev/controller: `+controller+`},
		  ownerReferences: [{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, name: web, uid: u, controller: true}]}}`)
		former.SetLabels(infra.Labels(object.Name{Namespace: "shop", Name: "web"}, "gone"))
		return append(out, gateway, route, former)
	}
	for accepted, want := range map[string]map[string]string{
		`type: Accepted, status: "True", reason: Accepted`: {
			"Gateway shop/web": "GatewayClassNotFound", "HTTPRoute shop/web": "NoMatchingParent",
		},
		`type: Accepted, status: "False", reason: GatewayClassNotFound`: {
			"Gateway shop/web": "GatewayClassNotFound", "HTTPRoute shop/web": "Accepted",
		},
	} {
		p := pipeline.New(pipeline.Provisioned(controller, "", nil))
		batch := source.Batch{Set: all(accepted)}
		for _, o := range batch.Set {
			objects[source.KeyOf(o)] = o
		}
		p.Apply(batch)
		items := Live(p, objects, controller, "").Items
		if len(items) != len(want) {
			t.Errorf("%s: %d rows", accepted, len(items))
		}
		for _, it := range items {
			if got := it.Summary.State; got != want[it.Key()] || it.Summary.OK != (got == "Accepted") {
				t.Errorf("%s: %s says %+v, want %s", accepted, it.Key(), it.Summary, want[it.Key()])
			}
		}
	}
}

// TestRoutesOfSets protects whoever looks for the routes of a Gateway: one on a ListenerSet
// names the set, and the row says whose that is.
func TestRoutesOfSets(t *testing.T) {
	p := pipeline.New(pipeline.Provisioned(controller, "", nil))
	set := []source.Object{
		manifest[gwv1.GatewayClass](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: ours}, spec: {controllerName: `+controller+`}}`),
		manifest[gwv1.Gateway](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: infra, name: web},
		  spec: {gatewayClassName: ours, allowedListeners: {namespaces: {from: All}}, listeners: [{name: http, port: 80, protocol: HTTP}]}}`),
		manifest[gwv1.ListenerSet](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {namespace: shop, name: more},
		  spec: {parentRef: {name: web, namespace: infra}, listeners: [{name: a, port: 81, protocol: HTTP}]}}`),
		manifest[gwv1.HTTPRoute](t, `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: shop, name: route},
		  spec: {parentRefs: [{kind: ListenerSet, name: more, sectionName: a}, {kind: ListenerSet, name: more}, {name: web, namespace: infra}]}}`),
	}
	p.Apply(source.Batch{Set: set})
	objects := map[object.Key]source.Object{}
	for _, o := range set {
		objects[source.KeyOf(o)] = o
	}
	rows := 0
	for _, it := range slices.Concat(Of(p).Items, Live(p, objects, controller, "").Items) { // where nobody has answered, too
		if it.Kind != "HTTPRoute" {
			continue
		}
		rows++
		if len(it.Summary.Parents) != 3 {
			t.Errorf("its parents are %q", it.Summary.Parents)
		}
		want := map[string]string{"ListenerSet shop/more/a": "infra/web", "ListenerSet shop/more": "infra/web"}
		if !maps.Equal(it.Summary.SetGateways, want) {
			t.Errorf("%v", it.Summary.SetGateways)
		}
	}
	if rows != 2 {
		t.Errorf("%d rows of the route", rows)
	}
}
