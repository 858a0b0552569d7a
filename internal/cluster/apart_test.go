package cluster

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

func only(r configuration.Role) func(*configuration.Configuration) {
	return func(c *configuration.Configuration) { c.Roles = []configuration.Role{r} }
}

var (
	configurationOnly  = only(configuration.RoleConfiguration)
	infrastructureOnly = only(configuration.RoleInfrastructure)
)

// installApart is install of the chart with infrastructure.apart. Whatever the API server forbids fails the test.
func installApart(t *testing.T) *installed {
	t.Helper()
	manifest := filepath.Join(t.TempDir(), "install.yaml")
	out, err := exec.Command("go", "tool", "-modfile=../../tools/helm/go.mod", "helm", "template", "gatehouse", "../../charts/gatehouse",
		"--namespace", "gatehouse-system", "--no-hooks", "--set", "crds.install=false,infrastructure.apart=true").Output()
	if err == nil {
		err = os.WriteFile(manifest, out, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	in := installFrom(t, apiserver.Options{Channel: apiserver.Experimental}, manifest)
	in.asks = func(r *replica, request *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && response.StatusCode == http.StatusForbidden {
			t.Errorf("%v may not %s %s", r.config.Roles, request.Method, request.URL.Path)
		}
		return response, err
	}
	return in
}

// sharedLimit has requests for the Gateway counted together, which takes a Deployment.
const sharedLimit = `{apiVersion: gatehouse.dev/v1alpha1, kind: RateLimitPolicy, metadata: {namespace: team, name: together}, spec: {
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}], limits: {all: {scope: Global, rates: [{limit: 100, window: 1m}]}}}}`

const routeOfWeb = `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: shop},
  spec: {parentRefs: [{name: web}], hostnames: [HOST], rules: [{backendRefs: [{name: shop, port: 80}]}]}}`

// children are the objects of fleets, as they are, but for what the API server makes of its own and what is secret.
func (in *installed) children() map[string]string {
	in.Helper()
	out := map[string]string{}
	for _, of := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, {Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	} {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(of)
		if err := in.client.List(in.Context(), all, client.InNamespace("team"), client.MatchingLabels{"app.kubernetes.io/managed-by": "gatehouse"}); err != nil {
			in.Fatal(err)
		}
		for _, o := range all.Items {
			name := o.GetKind() + " " + o.GetName()
			for _, path := range [][]string{
				{"status"}, {"data", "ca.crt"}, {"metadata", "annotations", "gatehouse.dev/applied"}, {"metadata", "annotations", "deployment.kubernetes.io/revision"},
				{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"}, {"metadata", "managedFields"}, {"metadata", "generation"},
				{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "ports"}, {"spec", "healthCheckNodePort"},
			} {
				if len(path) == 2 && path[1] == "ports" && o.GetKind() == "Service" {
					ports, _, _ := unstructured.NestedSlice(o.Object, path...)
					for _, p := range ports {
						delete(p.(map[string]any), "nodePort")
					}
					_ = unstructured.SetNestedSlice(o.Object, ports, path...)
					continue
				}
				unstructured.RemoveNestedField(o.Object, path...)
			}
			for _, owner := range o.GetOwnerReferences() {
				owner.UID = ""
				o.SetOwnerReferences([]metav1.OwnerReference{owner})
			}
			text, err := json.MarshalIndent(o.Object, "", " ")
			if err != nil {
				in.Fatal(err)
			}
			out[name] = string(text)
		}
	}
	return out
}

// dump is what proxies of a replica are sent.
func (r *replica) dump(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	if err := view.Print(&text, r.pipeline, view.StageXDS); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// gatewayText is all that the status of the Gateway says.
func (in *installed) gatewayText() string {
	gw, _ := in.web()
	text, _ := json.Marshal(gw.Status)
	return string(text)
}

// limitedGateway is a Gateway with parameters, for which requests are counted.
var limitedGateway = []string{parametrizedGateway, goodParameters, sharedLimit}

// TestRolesApart runs each role in a process of its own, with the rights that the chart gives it: what they make together is
// what one process makes, byte for byte, and each goes on while the other is away.
func TestRolesApart(t *testing.T) {
	joined := install(t)
	joined.apply(limitedGateway...)
	joined.apply(strings.Replace(routeOfWeb, "HOST", "shop.test", 1))
	joined.start()
	joined.until("the fleet is there", func() bool { return len(joined.children()) == 7 })
	want := joined.children()

	in := installApart(t)
	in.apply(limitedGateway...)
	in.apply(strings.Replace(routeOfWeb, "HOST", "shop.test", 1))
	serving := in.start(configurationOnly)
	if got := in.children(); len(got) != 0 {
		t.Errorf("who doesn't make fleets made %v", got)
	}
	making := in.start(infrastructureOnly)
	in.until("the fleet is there", func() bool { return len(in.children()) == len(want) })
	if diff := cmp.Diff(want, in.children()); diff != "" {
		t.Errorf("fleets: -together +apart:\n%s", diff)
	}
	in.proxy(serving, "web-1", acceptAll)
	in.until("the fleet's pods are missed", func() bool {
		return strings.Contains(in.gatewayText(), "Deployment team/web-gatehouse-limits") || in.notCounting()
	})
	in.address("192.0.2.7")
	in.until("the Gateway is programmed at its address", func() bool {
		gw, _ := in.web()
		programmed, _ := condition.Find(gw.Status.Conditions, string(gwv1.GatewayConditionProgrammed))
		return programmed.Status == metav1.ConditionTrue && len(gw.Status.Addresses) == 1 && gw.Status.Addresses[0].Value == "192.0.2.7"
	})

	// Without who makes fleets, edits are served.
	making.vanish()
	in.apply(strings.Replace(routeOfWeb, "HOST", "new.test", 1))
	in.until("the edit is served, and said to be", func() bool {
		return strings.Contains(serving.dump(t), "new.test") && in.routeAccepted(2)
	})
	in.apply(strings.Replace(parametrizedGateway, "listeners: [", "listeners: [{name: more, port: 8080, protocol: HTTP}, ", 1))
	in.until("the new listener is configured", func() bool { return len(serving.listenersOf(webGateway)) == 2 })
	before := in.children()

	// Without who serves, fleets stay, and are made anew.
	serving.vanish()
	in.launch("gatehouse-system", infrastructureOnly)
	in.until("the Service has the new port", func() bool { return strings.Contains(in.children()["Service web-gatehouse"], "8080") })
	in.apply(strings.Replace(goodParameters, "spec: {", "spec: {deployment: {replicas: 3}, ", 1))
	in.until("there are three replicas", func() bool {
		d := &appsv1.Deployment{}
		return in.find("web-gatehouse", d) && ptr.Deref(d.Spec.Replicas, 0) == 3
	})
	for name := range before {
		if in.children()[name] == "" {
			t.Errorf("%s is gone", name)
		}
	}
	in.apply(namedGateway("second", "gatehouse"))
	in.start(configurationOnly)
	in.until("another Gateway gets a fleet", func() bool { return in.fleetOf("second", "gatehouse")[1] != "" })
	if err := in.client.Delete(t.Context(), &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "second"}}); err != nil {
		t.Fatal(err)
	}
	in.until("nothing is told of a Gateway that is gone", func() bool {
		o := &corev1.ConfigMap{}
		err := in.client.Get(t.Context(), client.ObjectKey{Namespace: "gatehouse-system", Name: "gatehouse-asked"}, o)
		return err == nil && !strings.Contains(o.Data[boardKey], "second") && strings.Contains(o.Data[boardKey], `"team/web"`)
	})
}

// notCounting reports whether the policy with the shared limit says that nobody counts.
func (in *installed) notCounting() bool {
	in.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("gatehouse.dev/v1alpha1")
	o.SetKind("RateLimitPolicy")
	if !in.find("together", o) {
		return false
	}
	text, _ := json.Marshal(o.Object["status"])
	return strings.Contains(string(text), "has no pod that is ready")
}

// routeAccepted reports whether the route's status is of a generation.
func (in *installed) routeAccepted(generation int64) bool {
	in.Helper()
	r := &gwv1.HTTPRoute{}
	if !in.find("shop", r) || len(r.Status.Parents) != 1 {
		return false
	}
	accepted, _ := condition.Find(r.Status.Parents[0].Conditions, string(gwv1.RouteConditionAccepted))
	return accepted.Status == metav1.ConditionTrue && accepted.ObservedGeneration == generation
}

// address gives the Gateway's Service an address, as a load balancer does.
func (in *installed) address(ip string) {
	in.Helper()
	s := &corev1.Service{}
	if !in.find("web-gatehouse", s) {
		in.Fatal("there is no Service")
	}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
	if err := in.client.Status().Update(in.Context(), s); err != nil {
		in.Fatal(err)
	}
}

// TestProblemsOfFleetsApart protects who reads a Gateway's status: what keeps its fleet from being made is in it, and goes from it.
func TestProblemsOfFleetsApart(t *testing.T) {
	in := installApart(t)
	in.apply(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: web-gatehouse}, spec: {clusterIP: None, ports: [{port: 80}]}}`, gatewayOf("gatehouse"))
	in.start(configurationOnly)
	in.start(infrastructureOnly)
	in.until("the Gateway says that the Service is somebody else's", func() bool { return strings.Contains(in.gatewayText(), "Service team/web-gatehouse") })
	if err := in.client.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-gatehouse"}}); err != nil {
		t.Fatal(err)
	}
	in.until("it says so no longer", func() bool {
		return !strings.Contains(in.gatewayText(), "isn't") && in.fleetOf("web", "gatehouse")[0] != ""
	})
}

// TestTogetherThenApart protects fleets while an installation changes from one process to two, and back: nothing of them is
// made anew, or taken away for a moment, whoever starts first.
func TestTogetherThenApart(t *testing.T) {
	in := installApart(t)
	in.apply(limitedGateway...)
	in.apply(strings.Replace(routeOfWeb, "HOST", "shop.test", 1))
	in.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: elsewhere}}`) // where replicas have all rights
	run := func(change ...func(*configuration.Configuration)) *replica { return in.launch("elsewhere", change...) }
	one := run()
	in.until("the fleet is there", func() bool { return len(in.children()) == 7 })
	before, sent, uids := in.children(), one.dump(t), in.fleetOf("web", "gatehouse")
	same := func(when string) {
		t.Helper()
		if diff := cmp.Diff(before, in.children()); diff != "" || uids != in.fleetOf("web", "gatehouse") {
			t.Errorf("%s the fleet is another:\n%s", when, diff)
		}
	}
	one.end()
	making := run(infrastructureOnly)
	time.Sleep(time.Second) // nothing is to happen
	if ok, _ := making.Ready(); ok {
		t.Error("who makes fleets is ready although nobody has told what is asked of them")
	}
	same("before anybody serves,")
	serving := run(configurationOnly)
	in.until("both are ready", func() bool {
		a, _ := making.Ready()
		b, _ := serving.Ready()
		return a && b && making.leads.Load() != nil && serving.leads.Load() != nil
	})
	if diff := cmp.Diff(sent, serving.dump(t)); diff != "" || len(sent) < 1000 {
		t.Errorf("configuration: -together +apart:\n%s", diff)
	}
	in.apply(strings.Replace(goodParameters, "spec: {", "spec: {deployment: {replicas: 3}, ", 1))
	in.until("there are three replicas", func() bool { return strings.Contains(in.children()["Deployment web-gatehouse"], `"replicas": 3`) })
	in.apply(goodParameters)
	in.until("the fleet is as before", func() bool { return cmp.Equal(before, in.children()) })
	same("apart,")
	making.end()
	serving.end()
	one = run()
	in.until("it leads again", func() bool { return one.leads.Load() != nil })
	in.apply(strings.Replace(goodParameters, "spec: {", "spec: {deployment: {replicas: 2}, ", 1))
	in.until("there are two replicas", func() bool { return strings.Contains(in.children()["Deployment web-gatehouse"], `"replicas": 2`) })
	if uids != in.fleetOf("web", "gatehouse") {
		t.Error("together again, the fleet is another")
	}
}
