package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/fleetapi"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/certs"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// frontProxy is how an API server shows extensions that it is one.
type frontProxy struct {
	authority, shown *certs.Certificate
	args             []string // of kube-apiserver
}

func newFrontProxy(t *testing.T) *frontProxy {
	p := &frontProxy{authority: certs.Authority("front proxy")}
	p.shown = p.client("aggregator")
	dir := t.TempDir()
	for file, text := range map[string][]byte{"ca.crt": p.authority.PEM(), "tls.crt": p.shown.PEM(), "tls.key": p.shown.KeyPEM()} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.args = []string{
		"--requestheader-client-ca-file=" + filepath.Join(dir, "ca.crt"), "--requestheader-allowed-names=aggregator",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + filepath.Join(dir, "tls.crt"), "--proxy-client-key-file=" + filepath.Join(dir, "tls.key"),
	}
	return p
}

func (p *frontProxy) client(name string) *certs.Certificate {
	return certs.Sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, nil, p.authority)
}

// fleetRights are those that the chart gives controllers with fleetAPI.enabled.
var fleetRights = []string{
	`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: gatehouse-fleet-api}, rules: [
  {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]},
  {apiGroups: [apiregistration.k8s.io], resources: [apiservices], resourceNames: [v1alpha1.fleet.gatehouse.dev], verbs: [get, patch]}]}`,
	`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: gatehouse-fleet-api}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gatehouse-fleet-api},
  subjects: [{kind: ServiceAccount, name: gatehouse, namespace: gatehouse-system}]}`,
	`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: kube-system, name: gatehouse-fleet-api}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader},
  subjects: [{kind: ServiceAccount, name: gatehouse, namespace: gatehouse-system}]}`,
	`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: team, name: viewer}, rules: [{apiGroups: [fleet.gatehouse.dev], resources: [proxies], verbs: [list]}, {apiGroups: [fleet.gatehouse.dev], resources: [topologies], verbs: [get]}]}`,
	`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: team, name: viewer}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: viewer}, subjects: [{kind: User, name: viewer, apiGroup: rbac.authorization.k8s.io}]}`,
}

var proxiesResource = schema.GroupVersionResource{Group: fleetapi.Group, Version: fleetapi.Version, Resource: fleetapi.Resource}

// TestFleetAPI has the proxies of two replicas asked for through a real API server: listed, watched within a second and
// without a write, by whoever may, and by nobody else, least of all past the API server.
func TestFleetAPI(t *testing.T) {
	front := newFrontProxy(t)
	in := installOn(t, apiserver.Options{Channel: apiserver.Experimental, Args: front.args})
	in.apply(fleetRights...)
	apiserver.AwaitRights(t, in.Config)
	var writes atomic.Int32
	in.asks = func(_ *replica, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") && !strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") {
			writes.Add(1)
		}
		return next.RoundTrip(r)
	}
	fleetPort := port.OfTest(t)
	on := func(c *configuration.Configuration) { c.Ports.FleetAPI = fleetPort }
	first := in.start(on)
	in.until("the first replica leads", func() bool { return first.leads.Load() != nil })
	second := in.start(on)
	for _, r := range []*replica{first, second} {
		in.controllerPod(r)
	}
	in.extension(first.opts.Self.IP, fleetPort)
	gateway := func(more string) {
		in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web}, spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 80, protocol: HTTP}` + more + `]}}`)
	}
	gateway("")
	in.until("both replicas serve the Gateway", func() bool {
		return len(first.listenersOf(webGateway)) > 0 && len(second.listenersOf(webGateway)) > 0
	})
	var mu sync.Mutex
	refusedAt := map[string]time.Time{} // by listener
	in.proxy(first, "web-1", acceptAll)
	in.proxy(second, "web-2", func(typ envoy.Type, name string) string {
		if typ != envoy.Listeners || strings.HasPrefix(name, "http-80@") {
			return ""
		}
		mu.Lock()
		defer mu.Unlock()
		if refusedAt[name].IsZero() {
			refusedAt[name] = time.Now()
		}
		return "address in use: " + name
	})

	admin, err := dynamic.NewForConfig(in.Config)
	if err != nil {
		t.Fatal(err)
	}
	team := admin.Resource(proxiesResource).Namespace("team")
	var list *unstructured.UnstructuredList
	in.until("the API server lists both proxies", func() bool {
		list, err = team.List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 2 && field(&list.Items[0], "replica") == first.opts.Self.Name && field(&list.Items[1], "replica") == second.opts.Self.Name
	})
	one, err := team.Get(t.Context(), "web-1", metav1.GetOptions{})
	if err != nil || field(one, "gateway") != "team/web" || one.GetLabels()["gateway.networking.k8s.io/gateway-name"] != "web" {
		t.Errorf("web-1 is %v, %v", one, err)
	}
	if _, err := team.Get(t.Context(), "web-9", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("one that isn't there: %v", err)
	}
	if err := team.Delete(t.Context(), "web-1", metav1.DeleteOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("a proxy is deleted: %v", err)
	}
	if some, err := team.List(t.Context(), metav1.ListOptions{LabelSelector: "gateway.networking.k8s.io/gateway-name=other"}); err != nil || len(some.Items) > 0 {
		t.Errorf("of another Gateway: %v, %v", some, err)
	}
	if table := in.table("web-2"); len(table.Rows) != 1 || fmt.Sprint(table.Rows[0].Cells[:3]...) != "web-2webno" || len(table.Rows[0].Cells) != len(table.ColumnDefinitions) {
		t.Errorf("kubectl is shown %+v", table)
	}

	// A state change at the second replica is seen in a watch of the first.
	changes, err := admin.Resource(proxiesResource).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	var longest time.Duration
	for i := range 5 {
		gateway(`, {name: more, port: ` + strconv.Itoa(81+i) + `, protocol: HTTP}`)
		name := fmt.Sprintf("http-%d@", 81+i)
		event := awaitEvent(t, changes, func(e watch.Event) bool {
			o, ok := e.Object.(*unstructured.Unstructured)
			return ok && o.GetName() == "web-2" && field(o, "state") == "Refused" && strings.Contains(field(o, "refused", "message"), name)
		})
		seen := time.Now()
		if event.Type != watch.Modified {
			t.Errorf("the change is told as %s", event.Type)
		}
		mu.Lock()
		for listener, at := range refusedAt {
			if strings.HasPrefix(listener, name) {
				longest = max(longest, seen.Sub(at))
			}
		}
		mu.Unlock()
	}
	t.Logf("from a refusal to the watch: %s at most", longest)
	if longest > time.Second {
		t.Errorf("a state change is seen after %s", longest)
	}

	// So is one that the kubelet tells, and nothing is written for any of it.
	in.until("nothing is written any more", func() bool {
		before := writes.Load()
		time.Sleep(500 * time.Millisecond)
		return writes.Load() == before
	})
	before := writes.Load()
	for _, ready := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
		began := time.Now()
		in.readiness("web-1", ready)
		awaitEvent(t, changes, func(e watch.Event) bool {
			o, ok := e.Object.(*unstructured.Unstructured)
			return ok && o.GetName() == "web-1" && field(o, "ready") == strconv.FormatBool(ready == corev1.ConditionTrue)
		})
		if took := time.Since(began); took > time.Second {
			t.Errorf("readiness is seen after %s", took)
		}
	}
	if n := writes.Load() - before; n > 0 {
		t.Errorf("%d writes for changes of proxies' states", n)
	}

	// Who may see them in a namespace sees nothing else.
	as := rest.CopyConfig(in.Config)
	as.Impersonate.UserName = "viewer"
	viewer, err := dynamic.NewForConfig(as)
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := viewer.Resource(proxiesResource).Namespace("team").List(t.Context(), metav1.ListOptions{}); err != nil || len(seen.Items) != 2 {
		t.Errorf("who may list them gets %v, %v", seen, err)
	}
	if _, err := viewer.Resource(proxiesResource).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("of all namespaces: %v", err)
	}

	// Neither is it another way to how objects hang together.
	topologies := schema.GroupVersionResource{Group: fleetapi.Group, Version: fleetapi.Version, Resource: fleetapi.Topologies}
	in.until("the drawing of the namespace has the Gateway", func() bool {
		drawn, err := viewer.Resource(topologies).Namespace("team").Get(t.Context(), fleetapi.TopologyName, metav1.GetOptions{})
		return err == nil && strings.HasPrefix(field(drawn, "dot"), "digraph") && strings.Contains(field(drawn, "dot"), "team/web") && strings.Contains(field(drawn, "drawing", "nodes"), "section:more")
	})
	if _, err := viewer.Resource(topologies).Namespace("other").Get(t.Context(), fleetapi.TopologyName, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a drawing of another namespace: %v", err)
	}
	if _, err := viewer.Resource(topologies).Namespace("team").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a list of drawings for who may get one: %v", err)
	}
	if all, err := admin.Resource(topologies).List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) != 1 || all.Items[0].GetNamespace() != "team" || field(&all.Items[0], "nodes") == "0" || field(&all.Items[0], "dot") != "" {
		t.Errorf("all drawings: %+v, %v", all, err)
	}
	if _, err := admin.Resource(topologies).Namespace("team").Get(t.Context(), "other", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a drawing that isn't there: %v", err)
	}
	if _, err := admin.Resource(topologies).Watch(t.Context(), metav1.ListOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("a watch of drawings: %v", err)
	}

	// Past the API server nobody gets in, and it can't let in who may not.
	ask := func(shown *certs.Certificate, user, path string) (int, error) {
		config := &tls.Config{InsecureSkipVerify: true}
		if shown != nil {
			config.Certificates = []tls.Certificate{shown.TLS()}
		}
		transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(t.Context(), longestWait)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(second.opts.Self.IP, strconv.Itoa(fleetPort))+"/apis/fleet.gatehouse.dev/v1alpha1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Remote-User", user)
		request.Header.Set("X-Remote-Group", "system:authenticated")
		response, err := transport.RoundTrip(request)
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()
		return response.StatusCode, nil
	}
	if code, err := ask(nil, "admin", "/proxies"); err == nil {
		t.Errorf("without a certificate: %d", code)
	}
	if code, err := ask(certs.For("aggregator"), "admin", "/proxies"); err == nil {
		t.Errorf("with a certificate that nobody has signed: %d", code)
	}
	for what, want := range map[string]int{"/namespaces/team/proxies": http.StatusOK, "/proxies": http.StatusForbidden, "/namespaces/team/proxies/web-1": http.StatusForbidden, "/namespaces/team/proxies?watch=true": http.StatusForbidden} {
		if code, err := ask(front.shown, "viewer", what); code != want {
			t.Errorf("the API server, for who may list one namespace, %s: %d, %v, not %d", what, code, err, want)
		}
	}
	if code, err := ask(front.client("somebody"), "viewer", "/namespaces/team/proxies"); code != http.StatusUnauthorized {
		t.Errorf("a certificate of the authority with another name: %d, %v", code, err)
	}
	// What one replica has said is known to another, unless that is too young: TestOtherReplica of fleetapi has both.
	list, err = team.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	in.apply(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: team, name: viewer}, rules: [{apiGroups: [fleet.gatehouse.dev], resources: [proxies], verbs: [list, watch]}]}`)
	apiserver.AwaitRights(t, in.Config)
	for text, want := range map[string]int{list.GetResourceVersion(): http.StatusOK, "1": http.StatusGone, "x": http.StatusBadRequest, "9999999999999999": http.StatusGone} {
		if code, err := ask(front.shown, "viewer", "/namespaces/team/proxies?watch=true&timeoutSeconds=1&resourceVersion="+text); code != want && (want != http.StatusOK || code != http.StatusGone) {
			t.Errorf("a watch from version %s at another replica: %d, %v, not %d", text, code, err, want)
		}
	}

	// When it is down, nothing else is.
	first.end()
	second.end()
	in.until("proxies can't be listed", func() bool {
		_, err := team.List(t.Context(), metav1.ListOptions{})
		return apierrors.IsServiceUnavailable(err)
	})
	set, err := kubernetes.NewForConfig(in.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, resources, err := set.Discovery().ServerGroupsAndResources()
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && (!partial || len(failed) != 1) || len(resources) < 10 {
		t.Errorf("discovery: %d groups, %v", len(resources), err)
	}
	if _, err := set.CoreV1().Pods("team").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

// field is a part of a proxy's status, as text.
func field(o *unstructured.Unstructured, path ...string) string {
	v, ok, _ := unstructured.NestedFieldNoCopy(o.Object, append([]string{"status"}, path...)...)
	if !ok {
		return ""
	}
	return fmt.Sprint(v)
}

func awaitEvent(t *testing.T, from watch.Interface, is func(watch.Event) bool) watch.Event {
	t.Helper()
	for end := time.After(longestWait); ; {
		select {
		case e, ok := <-from.ResultChan():
			if !ok || e.Type == watch.Error {
				t.Fatalf("the watch has ended: %+v", e)
			}
			if is(e) {
				return e
			}
		case <-end:
			t.Fatal("the watch doesn't tell of the change")
		}
	}
}

// table asks for a proxy as kubectl does.
func (in *installed) table(name string) (table metav1.Table) {
	in.Helper()
	set, err := kubernetes.NewForConfig(in.Config)
	if err != nil {
		in.Fatal(err)
	}
	raw, err := set.RESTClient().Get().AbsPath("/apis/fleet.gatehouse.dev/v1alpha1/namespaces/team/proxies/"+name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json").DoRaw(in.Context())
	if err == nil {
		err = json.Unmarshal(raw, &table)
	}
	if err != nil {
		in.Fatal(err)
	}
	return table
}

// controllerPod makes the pod of a replica, by which others find it.
func (in *installed) controllerPod(r *replica) {
	in.Helper()
	in.apply(`{apiVersion: v1, kind: Pod, metadata: {namespace: gatehouse-system, name: ` + r.opts.Self.Name + `, labels: {app.kubernetes.io/name: gatehouse, app.kubernetes.io/instance: gatehouse, app.kubernetes.io/component: controller}},
  spec: {securityContext: {runAsNonRoot: true, runAsUser: 1, seccompProfile: {type: RuntimeDefault}}, containers: [{name: controller, image: gatehouse, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}`)
	var p corev1.Pod
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "gatehouse-system", Name: r.opts.Self.Name}, &p); err != nil {
		in.Fatal(err)
	}
	p.Status.PodIP, p.Status.PodIPs = r.opts.Self.IP, []corev1.PodIP{{IP: r.opts.Self.IP}}
	if err := in.client.Status().Update(in.Context(), &p); err != nil {
		in.Fatal(err)
	}
}

// readiness has the kubelet say whether a pod is ready.
func (in *installed) readiness(pod string, status corev1.ConditionStatus) {
	in.Helper()
	var p corev1.Pod
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: pod}, &p); err != nil {
		in.Fatal(err)
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	if err := in.client.Status().Update(in.Context(), &p); err != nil {
		in.Fatal(err)
	}
}

// extension has the API server ask a replica for proxies. There are no nodes: the Service is a name in place of them.
func (in *installed) extension(host string, port int) {
	in.Helper()
	var service corev1.Service
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "gatehouse-system", Name: "gatehouse"}, &service); err == nil {
		if err := in.client.Delete(in.Context(), &service); err != nil {
			in.Fatal(err)
		}
	}
	in.apply(fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {namespace: gatehouse-system, name: gatehouse}, spec: {type: ExternalName, externalName: %s, ports: [{port: %d}]}}`, host, port))
	apis, err := dynamic.NewForConfig(in.Config)
	if err != nil {
		in.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1alpha1.fleet.gatehouse.dev"},
		"spec": map[string]any{
			"group": fleetapi.Group, "version": fleetapi.Version, "groupPriorityMinimum": int64(100), "versionPriority": int64(10),
			"service": map[string]any{"namespace": "gatehouse-system", "name": "gatehouse", "port": int64(port)},
		},
	}}
	resource := apis.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	if _, err := resource.Create(in.Context(), o, metav1.CreateOptions{}); err != nil {
		in.Fatal(err)
	}
	in.Cleanup(func() { _ = resource.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}) })
}
