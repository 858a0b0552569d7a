package cluster

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

const twoResources = `
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayBlueprint
metadata: {name: web}
spec:
  values: {defaults: {zone: example.test, size: small}, overrides: {owner: platform}}
  resources:
  - id: names
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${gateway.metadata.name}-names"}
      data: {zone: "${values.zone}", size: "${values.size}", owner: "${values.owner}"}
  - id: record
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${gateway.metadata.name}-record"}
      data: {host: "${names.data.host}.${names.data.zone}"}
`

// TestBlueprint follows a class with a blueprint of two resources, of which one reads what the
// other one has in the cluster: values of the class and of the Gateway, waiting, drift, pruning
// and the end.
func TestBlueprint(t *testing.T) {
	in := install(t)
	in.apply(withBlueprint...)
	in.apply(gatewayWithBlueprint,
		`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayClassValues, metadata: {namespace: gatehouse-system, name: web},
		  spec: {targetRef: {group: gateway.networking.k8s.io, kind: GatewayClass, name: web}, defaults: {zone: class.test}, overrides: {size: large}}}`,
		`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayValues, metadata: {namespace: team, name: edge},
		  spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, defaults: {zone: team.test}, overrides: {size: tiny, owner: team}}}`,
	)
	r := in.start()
	get := in.configMap
	has := func(name string, data map[string]string) func() bool {
		return func() bool {
			o := get(name)
			for k, v := range data {
				if o == nil || o.Data[k] != v {
					return false
				}
			}
			return o != nil
		}
	}
	says := in.gatewaySays
	in.until("a class says that its blueprint doesn't exist", func() bool {
		o := &gwv1.GatewayClass{}
		if err := in.client.Get(t.Context(), client.ObjectKey{Name: "web"}, o); err != nil {
			t.Fatal(err)
		}
		c, _ := condition.Find(o.Status.Conditions, "Accepted")
		return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "GatewayBlueprint web, which doesn't exist")
	})
	in.apply(twoResources)
	in.until("the values come from the class and the Gateway", has("edge-names", map[string]string{"zone": "team.test", "size": "large", "owner": "platform"}))
	reader, err := kube.Open(in.Config, "team")
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := TakeSnapshot(t.Context(), reader, pipeline.ControllerName, "gatehouse-system")
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Complete(t.Context(), reader); err != nil {
		t.Fatal(err)
	}
	if drawn := view.DrawnOf(snapshot.Pipeline, object.Key{}, "team").Drawing.Tree(); !strings.Contains(drawn, "─ ConfigMap team/edge-names (ready)") {
		t.Errorf("the topology is drawn as %s", drawn)
	}
	var told []string
	for _, v := range view.RenderedOf(snapshot.Pipeline, object.Name{})[0].Values {
		told = append(told, fmt.Sprint(v.Name, " ", v.Value, " ", v.From))
	}
	if got, want := strings.Join(told, "; "), "owner platform GatewayBlueprint web; size large GatewayClassValues gatehouse-system/web; zone team.test GatewayValues team/edge"; got != want {
		t.Errorf("the values are told as %s, want %s", got, want)
	}
	in.until("the second resource waits for a field of the first", says(gwv1.GatewayConditionProgrammed, "record: spec.resources[1].template.data.host: ${names.data.host}: host is not there"))
	if get("edge-record") != nil {
		t.Error("what waits is there")
	}

	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"host":"www"}}`))
	if err := in.client.Patch(t.Context(), get("edge-names"), patch); err != nil {
		t.Fatal(err)
	}
	in.until("it follows when the field comes", has("edge-record", map[string]string{"host": "www.team.test"}))
	in.until("all objects are ready", func() bool { return in.edgeSaid(condition.GatewayConditionReady).Status == metav1.ConditionTrue })

	patch = client.RawPatch("application/merge-patch+json", []byte(`{"data":{"host":"drift.test"}}`))
	if err := in.client.Patch(t.Context(), get("edge-record"), patch); err != nil {
		t.Fatal(err)
	}
	in.until("drift is set right", has("edge-record", map[string]string{"host": "www.team.test"}))

	in.apply(strings.Replace(twoResources, "${gateway.metadata.name}-record", "${gateway.metadata.name}-renamed", 1))
	in.until("another name is another object, and the former one goes", func() bool {
		return has("edge-renamed", map[string]string{"host": "www.team.test"})() && get("edge-record") == nil
	})

	// A kind that the controller may not write yet costs the object alone, and heals by itself.
	in.apply(twoResources + `
  - id: policy
    template: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: edge}, spec: {podSelector: {}}}
`)
	in.until("what is missing is said with the rule to add", says(gwv1.GatewayConditionProgrammed,
		`the controller may not write objects of the kind NetworkPolicy; give it the right by a ClusterRole with the label gatehouse.dev/aggregate-to-blueprints=true and the rule {apiGroups: ["networking.k8s.io"], resources: [networkpolicies]`))
	in.until("the others are there", has("edge-record", map[string]string{"host": "www.team.test"}))
	in.allow("blueprint", rbacv1.PolicyRule{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}})
	in.until("it comes with the right", func() bool {
		return in.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "edge"}, &networkingv1.NetworkPolicy{}) == nil
	})
	in.apply(strings.Replace(twoResources, "${gateway.metadata.name}-record", "${gateway.metadata.name}-renamed", 1))
	in.until("it goes with its template", func() bool {
		err := in.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "edge"}, &networkingv1.NetworkPolicy{})
		return apierrors.IsNotFound(err) && get("edge-record") == nil
	})

	in.apply(strings.Replace(twoResources, "${values.zone}", "${vaules.zone}", 1))
	in.until("a mistake is told on the blueprint", func() bool {
		o := &v1alpha1.GatewayBlueprint{}
		if err := in.client.Get(t.Context(), client.ObjectKey{Name: "web"}, o); err != nil {
			t.Fatal(err)
		}
		c, _ := condition.Find(o.Status.Conditions, "Accepted")
		return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "Gateways go on with its generation") && strings.Contains(c.Message, "undeclared reference to 'vaules'")
	})
	if get("edge-renamed") == nil || get("edge-names") == nil {
		t.Error("a broken blueprint has cost objects")
	}
	in.until("so does the Gateway", says(gwv1.GatewayConditionProgrammed, "Its objects follow generation"))
	zone := func(zone string) {
		in.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayValues, metadata: {namespace: team, name: edge},
		  spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, defaults: {zone: ` + zone + `}}}`)
		in.until("values are rendered by the last good revision", has("edge-names", map[string]string{"zone": zone}))
	}
	zone("next.test")
	before := in.edgeSaid(condition.GatewayConditionReady)
	r.end()
	in.start()
	zone("restarted.test")
	if now := in.edgeSaid(condition.GatewayConditionReady); now != before {
		t.Errorf("a restart has made %v of %v", now, before)
	}

	if err := in.client.Delete(t.Context(), &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge"}}); err != nil {
		t.Fatal(err)
	}
	in.until("the objects go with their Gateway, although the blueprint is broken", func() bool {
		return get("edge-renamed") == nil && get("edge-names") == nil
	})
	in.until("and so does the inventory", func() bool { return in.inventories() == 0 })
}

const threePlaces = `
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayBlueprint
metadata: {name: web}
spec:
  resources:
  - id: own
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${class.metadata.name}-own"}, data: {foreign: "${foreign.metadata.name}"}}
  - id: foreign
    template: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: other, name: "${class.metadata.name}-foreign"}}
  - id: class
    template: {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: "${gateway.metadata.name}"}, value: 7}
`

// TestBlueprintGoesFirst protects against objects that are left: in the Gateway's namespace, in another one and
// in none, when the Gateway is deleted, when its blueprint was deleted before, and when that was broken
// before.
func TestBlueprintGoesFirst(t *testing.T) {
	in := install(t)
	in.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: other}}`)
	in.apply(withBlueprint...)
	in.allow("blueprint", rbacv1.PolicyRule{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"priorityclasses"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}})
	in.start()
	there := func() (n int) {
		for _, key := range []client.ObjectKey{{Namespace: "team", Name: "edge-own"}, {Namespace: "other", Name: "edge-foreign"}, {Name: "edge"}} {
			o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
			if key.Namespace == "" {
				o.TypeMeta = metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}
			}
			err := in.client.Get(t.Context(), key, o)
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if err == nil {
				n++
			}
		}
		return n
	}
	for name, first := range map[string]func(){
		"the Gateway": func() {},
		"the blueprint": func() {
			if err := in.client.Delete(t.Context(), &v1alpha1.GatewayBlueprint{ObjectMeta: metav1.ObjectMeta{Name: "web"}}); err != nil {
				t.Fatal(err)
			}
			in.until("the Gateway says so", in.gatewaySays(gwv1.GatewayConditionAccepted, "GatewayClass web is not accepted"))
		},
		"what the blueprint says": func() {
			in.apply(strings.Replace(threePlaces, "${gateway", "${gatway", 1))
			in.until("the Gateway says so", in.gatewaySays(gwv1.GatewayConditionProgrammed, "can't be used"))
		},
	} {
		in.apply(threePlaces, gatewayWithBlueprint)
		in.until("all objects are there", func() bool { return there() == 3 })
		first()
		if there() != 3 {
			t.Errorf("%s has cost objects", name)
		}
		if err := in.client.Delete(t.Context(), &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge"}}); err != nil {
			t.Fatal(err)
		}
		in.until("none is left where "+name+" went first", func() bool { return there() == 0 && in.inventories() == 0 })
	}
}

// withBlueprint is a class with the blueprint web.
var withBlueprint = []string{
	`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: gatehouse-system, name: web}, spec: {blueprintRef: {name: web}}}`,
	`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: web}, spec: {controllerName: gatehouse.dev/controller,
	  parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: gatehouse-system, name: web}}}`,
}

// gatewayWithBlueprint is a Gateway of that class.
const gatewayWithBlueprint = `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: edge},
	spec: {gatewayClassName: web, listeners: [{name: http, port: 80, protocol: HTTP}]}}`

// edgeSaid is a condition of that Gateway.
func (in *installed) edgeSaid(of gwv1.GatewayConditionType) metav1.Condition {
	in.Helper()
	o := &gwv1.Gateway{}
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "edge"}, o); err != nil {
		in.Fatal(err)
	}
	c, _ := condition.Find(o.Status.Conditions, string(of))
	return c
}

// gatewaySays returns whether a condition of it has a text.
func (in *installed) gatewaySays(of gwv1.GatewayConditionType, text string) func() bool {
	return func() bool { return strings.Contains(in.edgeSaid(of).Message, text) }
}

// inventories counts those of blueprints.
func (in *installed) inventories() int {
	in.Helper()
	all := &corev1.ConfigMapList{}
	if err := in.client.List(in.Context(), all, client.InNamespace("gatehouse-system"), client.HasLabels{"applyset.kubernetes.io/id"}); err != nil {
		in.Fatal(err)
	}
	return len(all.Items)
}

// TestFacade follows a Gateway that a Gateway of another class serves: routes are copied, the
// address is that of the other one, and there are no proxies.
func TestFacade(t *testing.T) {
	in := install(t)
	in.allow("blueprint", rbacv1.PolicyRule{APIGroups: []string{gwv1.GroupName}, Resources: []string{"gateways", "httproutes"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}})
	in.apply(`
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayBlueprint
metadata: {name: facade}
spec:
  datapath: Rendered
  addresses:
  - {type: IPAddress, value: "${served.status.addresses.map(a, a.value)}"}
  resources:
  - id: served
    template:
      apiVersion: gateway.networking.k8s.io/v1
      kind: Gateway
      metadata: {name: "${gateway.metadata.name}-served"}
      spec:
        gatewayClassName: other
        listeners: "${gateway.spec.listeners}"
  - id: copy
    for: Route
    includeWhen: route.kind == 'HTTPRoute'
    readyWhen: copy.status.parents.exists(p, p.conditions.exists(c, c.type == 'Accepted' && c.status == 'True'))
    template:
      apiVersion: gateway.networking.k8s.io/v1
      kind: HTTPRoute
      metadata: {name: "${route.metadata.name}-served", namespace: "${route.metadata.namespace}"}
      spec:
        parentRefs: [{name: "${served.metadata.name}", namespace: "${served.metadata.namespace}"}]
        hostnames: "${route.spec.?hostnames}"
        rules: "${route.spec.rules}"
`,
		`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: gatehouse-system, name: facade}, spec: {blueprintRef: {name: facade}}}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: facade}, spec: {controllerName: gatehouse.dev/controller,
		  parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: gatehouse-system, name: facade}}}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: other}, spec: {controllerName: example.com/other}}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: edge}, spec: {gatewayClassName: facade, listeners: [{name: http, port: 80, protocol: HTTP}]}}`,
	)
	route := func(weight string) {
		in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: web}, spec: {
		  parentRefs: [{name: edge}, {name: elsewhere}], hostnames: [web.example], rules: [{backendRefs: [{name: a, port: 80, weight: ` + weight + `}, {name: b, port: 80}]}]}}`)
	}
	route("7")
	in.start()
	get := in.find
	follows := func(weight int32) func() bool {
		return func() bool {
			copied, own := &gwv1.HTTPRoute{}, &gwv1.HTTPRoute{}
			return get("web-served", copied) && get("web", own) && copied.Spec.ParentRefs[0].Name == "edge-served" && len(copied.Spec.ParentRefs) == 1 &&
				reflect.DeepEqual(copied.Spec.Rules, own.Spec.Rules) && *copied.Spec.Rules[0].BackendRefs[0].Weight == weight
		}
	}
	in.until("the route is copied", follows(7))
	route("3")
	in.until("weights follow", follows(3))
	said := func(of gwv1.GatewayConditionType, status metav1.ConditionStatus, text string) func() bool {
		return func() bool {
			edge := &gwv1.Gateway{}
			get("edge", edge)
			c, _ := condition.Find(edge.Status.Conditions, string(of))
			return c.Status == status && strings.Contains(c.Message, text)
		}
	}
	in.until("it waits for the address", said(gwv1.GatewayConditionProgrammed, metav1.ConditionFalse,
		"The Gateway's blueprint has no address for it: spec.addresses[0].value"))

	served := &gwv1.Gateway{}
	get("edge-served", served)
	served.Status.Addresses = []gwv1.GatewayStatusAddress{{Type: new(gwv1.IPAddressType), Value: "192.0.2.7"}}
	served.Status.Conditions = []metav1.Condition{{
		Type: "Programmed", Status: metav1.ConditionTrue, Reason: "Programmed", ObservedGeneration: served.Generation, LastTransitionTime: metav1.Now(),
	}}
	if err := in.client.Status().Update(t.Context(), served); err != nil {
		t.Fatal(err)
	}
	in.until("it is programmed by what it renders", said(gwv1.GatewayConditionProgrammed, metav1.ConditionTrue, ""))
	in.until("a route that is not accepted shows", said(condition.GatewayConditionReady, metav1.ConditionFalse, "copy of HTTPRoute team/web, HTTPRoute team/web-served: readyWhen is false"))
	edge := &gwv1.Gateway{}
	get("edge", edge)
	if a := edge.Status.Addresses; len(a) != 1 || a[0].Value != "192.0.2.7" {
		t.Errorf("the addresses are %v", a)
	}
	if l := edge.Status.Listeners; len(l) != 1 || l[0].AttachedRoutes != 1 {
		t.Errorf("the listeners are %v", l)
	}
	all := &appsv1.DeploymentList{}
	if err := in.client.List(t.Context(), all, client.InNamespace("team")); err != nil || len(all.Items) > 0 {
		t.Errorf("there are proxies: %d, %v", len(all.Items), err)
	}
}

// allow gives the controllers a right, as the cluster does by the ClusterRoles that it aggregates.
func (in *installed) allow(name string, rules ...rbacv1.PolicyRule) {
	in.Helper()
	meta := metav1.ObjectMeta{Name: name}
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "gatehouse", Namespace: "gatehouse-system"}},
		},
	} {
		if err := in.client.Create(in.Context(), o); err != nil {
			in.Fatal(err)
		}
	}
	apiserver.AwaitRights(in, in.Config)
}

const withReplacement = `
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayBlueprint
metadata: {name: web}
spec:
  values: {defaults: {zone: a}}
  resources:
  - id: record
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${gateway.metadata.name}-record"}, data: {uses: "${cert.metadata.name}"}}
    readyWhen: record.data.?seen.orValue("") == record.data.uses
  - id: cert
    replace: CreateBeforeDestroy
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${gateway.metadata.name}-cert-${values.zone}"}}
    readyWhen: cert.data.?ready.orValue("") == "yes"
`

// find reads an object of the team's, and reports whether there is one.
func (in *installed) find(name string, o client.Object) bool {
	in.Helper()
	err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		in.Fatal(err)
	}
	return err == nil
}

// configMap is one of the team's; nil where there is none.
func (in *installed) configMap(name string) *corev1.ConfigMap {
	in.Helper()
	o := &corev1.ConfigMap{}
	if !in.find(name, o) {
		return nil
	}
	return o
}

// TestReplacement follows an object whose name changes: the new one is made, becomes ready, is taken up by what reads
// it, which becomes ready with it, and then the old one goes. Meanwhile the old one is read. What is
// said meanwhile, a restart at each step, and a blueprint that is deleted in the middle are part of it.
func TestReplacement(t *testing.T) {
	in := install(t)
	in.apply(withBlueprint...)
	in.apply(withReplacement, gatewayWithBlueprint)
	r := in.start()
	restart := func() {
		t.Helper()
		r.vanish()
		r = in.start()
	}
	get := in.configMap
	there := func(name string) func() bool { return func() bool { return get(name) != nil } }
	patch := func(name, data string) {
		t.Helper()
		if err := in.client.Patch(t.Context(), get(name), client.RawPatch("application/merge-patch+json", []byte(`{"data":`+data+`}`))); err != nil {
			t.Fatal(err)
		}
	}
	uses := func(name string) func() bool {
		return func() bool { o := get("edge-record"); return o != nil && o.Data["uses"] == name }
	}
	ready := func() bool { return in.edgeSaid(condition.GatewayConditionReady).Status == metav1.ConditionTrue }
	says := in.gatewaySays

	in.until("what has no predecessor is read at once", uses("edge-cert-a"))
	patch("edge-cert-a", `{"ready":"yes"}`)
	patch("edge-record", `{"seen":"edge-cert-a"}`)
	in.until("all are ready", ready)

	in.apply(strings.Replace(withReplacement, "zone: a", "zone: b", 1))
	in.until("the new one is made", there("edge-cert-b"))
	in.until("the old one says what it waits for", says(condition.GatewayConditionReady,
		"ConfigMap team/edge-cert-a: stays until ConfigMap team/edge-cert-b has taken its place: ConfigMap team/edge-cert-b is not ready: readyWhen is false"))
	restart()
	if get("edge-cert-a") == nil || !uses("edge-cert-a")() {
		t.Error("the old one is not in use any more before the new one is ready")
	}
	patch("edge-cert-b", `{"ready":"yes"}`)
	in.until("the new one is read when it is ready", uses("edge-cert-b"))
	in.until("the old one waits for who reads the new one", says(condition.GatewayConditionReady, "ConfigMap team/edge-record is not ready: readyWhen is false"))
	if err := in.client.Delete(t.Context(), &v1alpha1.GatewayBlueprint{ObjectMeta: metav1.ObjectMeta{Name: "web"}}); err != nil {
		t.Fatal(err)
	}
	restart()
	patch("edge-record", `{"seen":"edge-cert-b"}`)
	in.until("the Gateway says that its class has no blueprint", says(gwv1.GatewayConditionAccepted, "GatewayClass web is not accepted"))
	if get("edge-cert-a") == nil {
		t.Error("what is replaced goes although the blueprint is gone")
	}
	in.apply(strings.Replace(withReplacement, "zone: a", "zone: b", 1))
	in.until("the old one goes when all are ready", func() bool { return get("edge-cert-a") == nil })
	in.until("nothing is to do any more", ready)

	// The next one comes before the last one is ready: what is read is the last one that was.
	in.apply(strings.Replace(withReplacement, "zone: a", "zone: c", 1))
	in.until("another one is made", there("edge-cert-c"))
	in.apply(strings.Replace(withReplacement, "zone: a", "zone: d", 1))
	in.until("and another one", there("edge-cert-d"))
	if !uses("edge-cert-b")() {
		t.Error("what isn't ready is read")
	}
	patch("edge-cert-d", `{"ready":"yes"}`)
	in.until("the newest is read", uses("edge-cert-d"))
	patch("edge-record", `{"seen":"edge-cert-d"}`)
	in.until("the others go", func() bool { return get("edge-cert-b") == nil && get("edge-cert-c") == nil && ready() })
}
