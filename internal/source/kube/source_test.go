package kube

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// One server does for all tests that leave the definitions and the server alone.
func TestSource(t *testing.T) {
	c := newCluster(t, apiserver.Options{Channel: apiserver.Experimental})
	for name, test := range map[string]func(*testing.T, *cluster){
		"changes":      testChanges,
		"status":       testStatus,
		"stripped":     testStripped,
		"shared":       testShared,
		"selector":     testSelector,
		"namespaces":   testNamespaces,
		"contents":     testContents,
		"secretRights": testSecretRights,
		"rights":       testRights,
		"guard rights": testGuardRights,
		"channel":      testChannel,
	} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

// What exists comes in the first batch, changes come after it, and the objects are
// the cache's own.
func testChanges(t *testing.T, c *cluster) {
	c.create(t, namespace("changes", nil), route("changes", "first"), service("changes", "backend"))
	r, _ := read(t, c.Config, Options{Experimental: true})
	first := r.object(routeKey("changes", "first"))
	if first == nil || len(r.batches[0].Deleted) != 0 {
		t.Fatalf("the first batch deletes %v and has the route %v", r.batches[0].Deleted, first)
	}
	if live := r.Live(routeKey("changes", "first")); live != first {
		t.Error("what was handed over is a copy")
	}
	c.create(t, route("changes", "second"))
	r.has("HTTPRoute", "changes/first", "changes/second")
	c.delete(t, route("changes", "first"))
	r.has("HTTPRoute", "changes/second")
	if r.Live(routeKey("changes", "first")) != nil {
		t.Error("what is deleted is still live")
	}
	definition := object.Key{Kind: kind.Definition, Name: object.Name{Name: gatewayDefinition}}
	if o := r.object(definition); o == nil || o.GetAnnotations()["gateway.networking.k8s.io/bundle-version"] == "" {
		t.Errorf("the definition of Gateways doesn't tell its version: %v", o)
	}
	c.delete(t, route("changes", "second"))
}

// A status wakes nobody, and is there for who asks. The next version of the spec
// comes with it.
func testStatus(t *testing.T, c *cluster) {
	o, backend := route("status", "r"), service("status", "s")
	c.create(t, namespace("status", nil), o, backend)
	r, _ := read(t, c.Config, Options{})
	key := routeKey("status", "r")
	before := r.object(key).(*gwv1.HTTPRoute)
	_, seen := r.count(key)
	updateStatus(t, c, o, func(o *gwv1.HTTPRoute) { o.Status = routeStatus("one") })
	r.wait("the status is seen", func() bool { return r.live[key] > seen })
	live := r.Live(key).(*gwv1.HTTPRoute)
	if len(live.Status.Parents) != 1 {
		t.Errorf("the live object has no status: %v", live.Status)
	}
	if handed, _ := r.count(key); handed != 1 || r.object(key) != before {
		t.Errorf("a status was handed over: %d times", handed)
	}
	if &live.Spec.ParentRefs[0] != &before.Spec.ParentRefs[0] || &live.Spec.Hostnames[0] != &before.Spec.Hostnames[0] {
		t.Error("the spec is in memory twice")
	}
	update(t, c, o, func(o *gwv1.HTTPRoute) { o.Spec.Hostnames = nil })
	r.wait("the spec is handed over", func() bool { return r.changed[key] == 2 })

	// A Service's addresses count, other conditions of it don't.
	key = object.Key{Kind: kind.Service, Name: object.Name{Namespace: "status", Name: "s"}}
	updateStatus(t, c, backend, func(o *corev1.Service) {
		o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	})
	r.wait("the address is handed over", func() bool { return r.changed[key] == 2 })
	c.delete(t, o)
}

// What nobody reads is not kept.
func testStripped(t *testing.T, c *cluster) {
	o := route("stripped", "r")
	o.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "mine": "stays"}
	endpoints := slice("stripped", "s", "192.0.2.1")
	c.create(t, namespace("stripped", nil), o, endpoints)
	r, _ := read(t, c.Config, Options{})
	live := r.Live(routeKey("stripped", "r"))
	if len(live.GetManagedFields()) != 0 {
		t.Error("managedFields are kept")
	}
	if diff := cmp.Diff(map[string]string{"mine": "stays"}, live.GetAnnotations()); diff != "" {
		t.Error(diff)
	}
	key := object.Key{Kind: kind.EndpointSlice, Name: object.Name{Namespace: "stripped", Name: "s"}}
	got := r.Live(key).(*discoveryv1.EndpointSlice)
	if got.Annotations != nil || len(got.Labels) != 1 || got.Endpoints[0].NodeName != nil || got.Endpoints[0].Addresses[0] != "192.0.2.1" {
		t.Errorf("the EndpointSlice is %v", got)
	}
	// An annotation that each write changes is no change.
	_, seen := r.count(key)
	update(t, c, endpoints, func(o *discoveryv1.EndpointSlice) {
		o.Annotations["endpoints.kubernetes.io/last-change-trigger-time"] = "2026-01-02T00:00:00Z"
	})
	r.wait("the annotation is seen", func() bool { return r.live[key] > seen })
	if handed, _ := r.count(key); handed != 1 {
		t.Errorf("an annotation was handed over: %d times", handed)
	}
	c.delete(t, o)
}

// What objects have in common is in memory once, whether they were there at first or come
// later.
func testShared(t *testing.T, c *cluster) {
	c.create(t, namespace("shared", nil), route("shared", "a"), route("shared", "b"))
	r, _ := read(t, c.Config, Options{})
	c.create(t, route("shared", "c"))
	r.has("HTTPRoute", "shared/a", "shared/b", "shared/c")
	var parents []*gwv1.ParentReference
	for _, name := range []string{"a", "b", "c"} {
		o := r.object(routeKey("shared", name)).(*gwv1.HTTPRoute)
		if want := gwv1.Hostname(name + ".example.com"); len(o.Spec.Hostnames) != 1 || o.Spec.Hostnames[0] != want {
			t.Errorf("%s has the hosts %v", name, o.Spec.Hostnames)
		}
		parents = append(parents, &o.Spec.ParentRefs[0])
	}
	if parents[0] != parents[1] || parents[0] != parents[2] {
		t.Errorf("the same Gateway is in memory more than once: %p", parents)
	}
	c.delete(t, route("shared", "a"), route("shared", "b"), route("shared", "c"))
}

// A namespace's labels bring its objects in, contents too, and take them away.
func testSelector(t *testing.T, c *cluster) {
	in := map[string]string{"gatehouse": "yes"}
	inside, outside := namespace("selected", in), namespace("unselected", nil)
	c.create(t, inside, outside,
		route("selected", "a"), route("unselected", "b"), secret("selected", "s", "1"), secret("unselected", "s", "2"))
	selector := labels.SelectorFromSet(in)
	r, _ := read(t, c.Config, Options{Selector: selector})
	r.want([]object.Name{{Namespace: "selected", Name: "s"}, {Namespace: "unselected", Name: "s"}}, nil)
	r.has("HTTPRoute", "selected/a")
	r.has("Secret", "selected/s")
	if r.object(object.Key{Kind: kind.Namespace, Name: object.Name{Name: "unselected"}}) == nil {
		t.Error("a namespace's labels are always read")
	}

	update(t, c, outside, func(o *corev1.Namespace) { o.Labels["gatehouse"] = "yes" })
	r.has("HTTPRoute", "selected/a", "unselected/b")
	r.has("Secret", "selected/s", "unselected/s")

	update(t, c, inside, func(o *corev1.Namespace) { delete(o.Labels, "gatehouse") })
	r.has("HTTPRoute", "unselected/b")
	r.has("Secret", "unselected/s")
	// Nothing is told of it any more.
	handed, seen := r.count(routeKey("selected", "a"))
	update(t, c, route("selected", "a"), func(o *gwv1.HTTPRoute) { o.Spec.Hostnames = nil })
	r.wait("the change is seen", func() bool { return r.live[routeKey("selected", "a")] > seen })
	if again, _ := r.count(routeKey("selected", "a")); again != handed {
		t.Error("a change in a namespace that is not read was handed over")
	}
	c.delete(t, route("selected", "a"), route("unselected", "b"))
}

// With namespaces by name, rights in those are enough.
func testNamespaces(t *testing.T, c *cluster) {
	c.create(t, namespace("named", nil), namespace("unnamed", nil), route("named", "a"), route("unnamed", "b"))
	c.allow(t, "narrow", "named", []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
	}, []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"namespaces", "gatewayclasses", "gatewayblueprints", "customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"}},
	})
	r, _ := read(t, as(c.Config, "narrow"), Options{Namespaces: []string{"named"}})
	r.has("HTTPRoute", "named/a")
	if text := r.log.String(); strings.Contains(text, `level=WARN msg="a kind is not read"`) {
		t.Errorf("rights in the namespace were not enough:\n%s", text)
	}
	c.delete(t, route("named", "a"), route("unnamed", "b"))
}

// Contents come for those that are wanted, and follow their changes.
func testContents(t *testing.T, c *cluster) {
	ns := "contents"
	config := &corev1.ConfigMap{ObjectMeta: objectMeta(ns, "ca"), Data: map[string]string{"ca.crt": "1"}}
	c.create(t, namespace(ns, nil), secret(ns, "a", "1"), secret(ns, "other", "1"), config)
	r, _ := read(t, c.Config, Options{})
	r.has("Secret")
	names := func(list ...string) (out []object.Name) {
		for _, n := range list {
			out = append(out, object.Name{Namespace: ns, Name: n})
		}
		return out
	}
	value := func(name string) string {
		if s, ok := r.objects[object.Key{Kind: kind.Secret, Name: object.Name{Namespace: ns, Name: name}}].(*corev1.Secret); ok {
			return string(s.Data["value"])
		}
		return ""
	}
	b := r.want(names("a", "missing"), names("ca"))
	if len(b.Set) != 2 || len(b.Deleted) != 0 || r.Unread() != 0 {
		t.Errorf("wanted a Secret and a ConfigMap, got %v, %v; unread: %d", b.Set, b.Deleted, r.Unread())
	}
	if again := r.want(names("a", "missing"), names("ca")); !again.Empty() {
		t.Errorf("wanting the same again brings %v", again)
	}
	update(t, c, secret(ns, "a", ""), func(o *corev1.Secret) { o.Data["value"] = []byte("2") })
	r.wait("the Secret's change comes", func() bool { return value("a") == "2" })
	c.create(t, secret(ns, "missing", "late"))
	r.wait("the missing Secret comes", func() bool { return value("missing") == "late" })
	c.delete(t, secret(ns, "missing", ""))
	r.wait("the Secret goes", func() bool { return value("missing") == "" })

	// A change of metadata alone is none.
	key := object.Key{Kind: kind.Secret, Name: object.Name{Namespace: ns, Name: "a"}}
	handed, seen := r.count(key)
	update(t, c, secret(ns, "a", ""), func(o *corev1.Secret) { o.Labels = map[string]string{"a": "b"} })
	r.wait("the label is seen", func() bool { return r.live[key] > seen })
	update(t, c, config, func(o *corev1.ConfigMap) { o.Data["ca.crt"] = "2" })
	r.wait("the ConfigMap's change comes", func() bool {
		return r.changed[object.Key{Kind: kind.ConfigMap, Name: object.Name{Namespace: ns, Name: "ca"}}] == 2
	})
	if again, _ := r.count(key); again != handed {
		t.Error("a label of a Secret was handed over")
	}

	b = r.want(nil, nil)
	if len(b.Deleted) != 2 || len(b.Set) != 0 {
		t.Errorf("nothing wanted brings %v, %v", b.Set, b.Deleted)
	}
	r.has("Secret")
}

// Without the right to watch Secrets they are read once, and without the right to
// read one it says so and goes on.
func testSecretRights(t *testing.T, c *cluster) {
	ns := "secret-rights"
	c.create(t, namespace(ns, nil), secret(ns, "a", "1"), secret(ns, "b", "1"))
	c.allow(t, "secretive", ns, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"a"}, Verbs: []string{"get"}},
	}, []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: everythingBut("secrets"), Verbs: []string{"get", "list", "watch"}},
	})
	r, _ := read(t, as(c.Config, "secretive"), Options{})
	r.want([]object.Name{{Namespace: ns, Name: "a"}, {Namespace: ns, Name: "b"}}, nil)
	r.has("Secret", ns+"/a")
	for _, text := range []string{`"secretive" cannot list resource "secrets"`, `Secret secret-rights/b`, `cannot get resource`} {
		if !strings.Contains(strings.ReplaceAll(r.log.String(), `\"`, `"`), strings.ReplaceAll(text, `\"`, `"`)) {
			t.Errorf("the log doesn't say %s:\n%s", text, r.log)
		}
	}
	if r.Unread() != 0 {
		t.Error("what is denied is no longer waited for")
	}
}

// A kind that may not be read is off until it may.
func testRights(t *testing.T, c *cluster) {
	c.create(t, namespace("rights", nil), route("rights", "a"))
	c.allow(t, "weak", "rights", nil, []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: everythingBut("httproutes"), Verbs: []string{"get", "list", "watch"}},
	})
	r, _ := read(t, as(c.Config, "weak"), Options{})
	r.has("HTTPRoute")
	if !strings.Contains(r.log.String(), "httproutes") || !strings.Contains(r.log.String(), "forbidden") {
		t.Errorf("the log doesn't name the right that is missing:\n%s", r.log)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: objectMeta("", "weak")}
	update(t, c, role, func(o *rbacv1.ClusterRole) {
		o.Rules[0].Resources = append(o.Rules[0].Resources, "httproutes")
	})
	r.has("HTTPRoute", "rights/a")
	c.delete(t, route("rights", "a"))
}

// While policies that say who may pass can't be read, nothing is known.
func testGuardRights(t *testing.T, c *cluster) {
	c.create(t, namespace("guard-rights", nil), route("guard-rights", "a"))
	c.allow(t, "unguarded", "guard-rights", nil, []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: everythingBut("authpolicies"), Verbs: []string{"get", "list", "watch"}},
	})
	r, _ := begin(t, as(c.Config, "unguarded"), Options{})
	r.wait("it says so", func() bool { return strings.Contains(r.log.String(), "they say who may pass") })
	time.Sleep(2 * time.Second)
	r.wait("nothing has come", func() bool { return len(r.batches) == 0 })
	role := &rbacv1.ClusterRole{ObjectMeta: objectMeta("", "unguarded")}
	update(t, c, role, func(o *rbacv1.ClusterRole) {
		o.Rules[0].Resources = append(o.Rules[0].Resources, "authpolicies")
	})
	r.has("HTTPRoute", "guard-rights/a")
	c.delete(t, route("guard-rights", "a"))
}

func testChannel(t *testing.T, c *cluster) {
	if got, err := Channel(t.Context(), c.client); err != nil || got != "experimental" {
		t.Errorf("channel %q, %v", got, err)
	}
}

// everythingBut lists the resources that are read, without some.
func everythingBut(without ...string) (out []string) {
	for k := range kind.All.Rows() {
		keep := true
		for _, w := range without {
			keep = keep && k.Plural != w
		}
		if keep {
			out = append(out, k.Plural)
		}
	}
	return out
}

// allow gives a user rights in a namespace and everywhere.
func (c *cluster) allow(t *testing.T, user, ns string, here, everywhere []rbacv1.PolicyRule) {
	t.Helper()
	scheme := c.client.Scheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	subject := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}
	c.create(t,
		&rbacv1.Role{ObjectMeta: objectMeta(ns, user), Rules: here},
		&rbacv1.RoleBinding{ObjectMeta: objectMeta(ns, user), Subjects: subject,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}},
		&rbacv1.ClusterRole{ObjectMeta: objectMeta("", user), Rules: everywhere},
		&rbacv1.ClusterRoleBinding{ObjectMeta: objectMeta("", user), Subjects: subject,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}},
	)
	apiserver.AwaitRights(t, c.Config)
}

// as is the configuration of another user.
func as(config *rest.Config, user string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Impersonate.UserName = user
	return config
}

// All of five thousand routes are in the first batch, and all together.
func TestFirstBatchIsWhole(t *testing.T) {
	const routes = 1500 // three pages of a list
	c := newCluster(t, apiserver.Options{Channel: apiserver.Standard})
	c.create(t, namespace("many", nil))
	work := make(chan int)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := range work {
				if err := c.client.Create(t.Context(), route("many", fmt.Sprint("r", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range routes {
		work <- i
	}
	close(work)
	group.Wait()
	r, _ := read(t, c.Config, Options{})
	n := 0
	for _, o := range r.batches[0].Set {
		if source.KeyOf(o).Kind == kind.HTTPRoute {
			n++
		}
	}
	if n != routes {
		t.Errorf("the first batch has %d routes, want %d", n, routes)
	}
}

// Kinds come and go while the Source runs.
func TestDefinitionsComeAndGo(t *testing.T) {
	slow.Skip(t)
	c := newCluster(t, apiserver.Options{})
	c.create(t, namespace("late", nil), service("late", "s"))
	r, _ := read(t, c.Config, Options{})
	r.has("HTTPRoute")
	if text := r.log.String(); strings.Count(text, "httproutes.gateway.networking.k8s.io") != 1 {
		t.Errorf("the missing kind is not told once:\n%s", text)
	}
	crds := apiserver.CRDs(t, apiserver.Standard)
	apiserver.InstallCRDs(t, c.Config, crds...)
	c.create(t, route("late", "a"))
	r.has("HTTPRoute", "late/a")

	// A version that is not ours is not read, and it says so.
	for _, crd := range crds {
		if crd.Name == "tlsroutes.gateway.networking.k8s.io" {
			other := crd.DeepCopy()
			for i := range other.Spec.Versions {
				v := &other.Spec.Versions[i]
				v.Served = v.Name != "v1"
			}
			apiserver.InstallCRDs(t, c.Config, other)
		}
	}
	r.wait("the log says that v1 is not served", func() bool {
		return strings.Contains(r.log.String(), "doesn't serve v1")
	})

	apiserver.RemoveCRDs(t, c.Config, crds...)
	r.has("HTTPRoute")
	r.has("CustomResourceDefinition")
	r.wait("routes are off", func() bool { return r.Live(routeKey("late", "a")) == nil })

	apiserver.InstallCRDs(t, c.Config, crds...)
	c.create(t, route("late", "b"))
	r.has("HTTPRoute", "late/b")
	if r.object(object.Key{Kind: kind.Service, Name: object.Name{Namespace: "late", Name: "s"}}) == nil {
		t.Error("a Service went with others' definitions")
	}
}

// A server that dies and comes back loses nothing, and tells nothing twice.
func TestServerRestarts(t *testing.T) {
	slow.Skip(t)
	c := newCluster(t, apiserver.Options{Channel: apiserver.Standard})
	c.create(t, namespace("restart", nil), route("restart", "stays"), route("restart", "goes"), secret("restart", "s", "1"))
	r, _ := read(t, c.Config, Options{})
	r.want([]object.Name{{Namespace: "restart", Name: "s"}}, nil)
	r.mu.Lock()
	before := maps.Clone(r.changed)
	r.mu.Unlock()
	c.Kill()
	c.Resume()
	c.create(t, route("restart", "comes"))
	c.delete(t, route("restart", "goes"))
	update(t, c, secret("restart", "s", ""), func(o *corev1.Secret) { o.Data["value"] = []byte("2") })
	r.has("HTTPRoute", "restart/stays", "restart/comes")
	r.wait("the Secret's change comes", func() bool {
		s := r.objects[object.Key{Kind: kind.Secret, Name: object.Name{Namespace: "restart", Name: "s"}}].(*corev1.Secret)
		return string(s.Data["value"]) == "2"
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, n := range r.changed {
		if n != before[k] && k.Namespace != "restart" && before[k] > 0 {
			t.Errorf("%s was handed over again", k)
		}
	}
	if n := r.changed[routeKey("restart", "stays")]; n != 1 {
		t.Errorf("the route that stays was handed over %d times", n)
	}
}

// Each kind's objects are told apart by what they say of themselves.
func TestTypeMeta(t *testing.T) {
	types := kind.All.Types()
	for k := range kind.All.Rows() {
		for _, v := range k.Watched() {
			o := v.New()
			if t, ok := types[reflect.TypeOf(o)]; ok {
				setType(o, t)
			}
			if v.Convert != nil {
				o = v.Convert(o)
			}
			want := object.Key{Kind: k.Kind}
			if got := source.KeyOf(o); got != want {
				t.Errorf("%s %s says of itself %v", k, v.Name, got)
			}
		}
	}
}
