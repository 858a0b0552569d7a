package main

import (
	"context"
	_ "embed"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

//go:embed crd.yaml
var definition []byte

// patience is how long to wait for what is done in milliseconds on a quiet machine.
const patience = time.Minute

// objects are those of the example that the design of a graph of policies began with: two
// Gateways, four routes of which one is on both, and policies on one Gateway and three
// routes.
const objects = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: any}
spec: {controllerName: example.com/nobody}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: default, name: gw-1}
spec: {gatewayClassName: any, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: default, name: gw-2}
spec: {gatewayClassName: any, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: default, name: route-1}
spec: {parentRefs: [{name: gw-1}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: default, name: route-2}
spec: {parentRefs: [{name: gw-1}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: default, name: route-3}
spec: {parentRefs: [{name: gw-1}, {name: gw-2}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: default, name: route-4}
spec: {parentRefs: [{name: gw-2}]}
---
apiVersion: example.com/v1
kind: ColorPolicy
metadata: {namespace: default, name: p-1}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw-1}]
  defaults: {strategy: merge, colors: {sky: blue, grass: green}}
---
apiVersion: example.com/v1
kind: ColorPolicy
metadata: {namespace: default, name: p-2}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: route-2}], colors: {sky: grey}}
---
apiVersion: example.com/v1
kind: ColorPolicy
metadata: {namespace: default, name: p-3}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: route-3}], colors: {sky: red}}
---
apiVersion: example.com/v1
kind: ColorPolicy
metadata: {namespace: default, name: p-4}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: route-4}], colors: {sky: black}}
`

// world is a cluster with the controller.
type world struct {
	*testing.T
	client client.Client

	mu       sync.Mutex
	painted  map[string]string // by path
	requests []string          // of the controller, but for watches
}

func start(t *testing.T) *world {
	server := apiserver.Start(t, apiserver.Options{Channel: "standard"})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definition, crd); err != nil {
		t.Fatal(err)
	}
	apiserver.InstallCRDs(t, server.Config, crd)
	w := &world{T: t, painted: map[string]string{}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, gwv1.Install, addToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if w.client, err = client.New(server.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/objects.yaml"
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	apiserver.Install(t, server.Config, file)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	config := rest.CopyConfig(server.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{w, next} })
	go func() { done <- run(ctx, config, w.paint) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) paint(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path, color, _ := strings.Cut(text, ":")
	w.painted[path] = strings.TrimSpace(color)
}

// counted notes the requests of a client.
type counted struct {
	w    *world
	next http.RoundTripper
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		c.w.mu.Lock()
		c.w.requests = append(c.w.requests, r.Method+" "+r.URL.Path)
		c.w.mu.Unlock()
	}
	return c.next.RoundTrip(r)
}

func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		w.mu.Lock()
		done := ok()
		w.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("not after %s: %s; painted %v, requests %v", patience, what, w.painted, w.requests)
		}
	}
}

// told returns what a policy's status says.
func (w *world) told(name string) string {
	o := &ColorPolicy{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: name}, o); err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, a := range o.Status.Ancestors {
		for _, c := range a.Conditions {
			if c.Type == "Programmed" && c.ObservedGeneration == o.Generation {
				out = append(out, string(a.AncestorRef.Name)+" "+c.Reason)
			}
		}
	}
	return strings.Join(out, ", ")
}

const (
	onFirst  = " on listener http of Gateway default/gw-1"
	onSecond = " on listener http of Gateway default/gw-2"
)

func rule(route string) string { return "rule rule-1 of HTTPRoute default/" + route }

// TestColors follows the example through the API server: what is painted, what the policies
// are told, and that a change asks the API server for nothing.
func TestColors(t *testing.T) {
	w := start(t)
	fromGateway := "grass is green by ColorPolicy default/p-1"
	want := map[string]string{
		rule("route-1") + onFirst:  fromGateway + " sky is blue by ColorPolicy default/p-1",
		rule("route-2") + onFirst:  fromGateway + " sky is grey by ColorPolicy default/p-2",
		rule("route-3") + onFirst:  fromGateway + " sky is red by ColorPolicy default/p-3",
		rule("route-3") + onSecond: "sky is red by ColorPolicy default/p-3",
		rule("route-4") + onSecond: "sky is black by ColorPolicy default/p-4",
	}
	for path, color := range want {
		w.until(path, func() bool { return w.painted[path] == color })
	}
	for name, want := range map[string]string{
		"p-1": "gw-1 PartiallyProgrammed", "p-2": "gw-1 Programmed", "p-3": "gw-1 Programmed, gw-2 Programmed", "p-4": "gw-2 Programmed",
	} {
		w.until("the status of "+name, func() bool { return w.told(name) == want })
	}

	// The Gateway's policy speaks for all now.
	w.mu.Lock()
	w.requests = nil
	w.mu.Unlock()
	p := &ColorPolicy{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "p-1"}, p); err != nil {
		t.Fatal(err)
	}
	p.Spec.Overrides, p.Spec.Defaults = p.Spec.Defaults, nil
	p.Spec.Overrides.Strategy = "atomic"
	if err := w.client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.until("the Gateway's sky over route-2", func() bool {
		return w.painted[rule("route-2")+onFirst] == fromGateway+" sky is blue by ColorPolicy default/p-1"
	})
	for name, want := range map[string]string{"p-1": "gw-1 Programmed", "p-2": "gw-1 Overridden", "p-3": "gw-1 Overridden, gw-2 Programmed"} {
		w.until("the status of "+name, func() bool { return w.told(name) == want })
	}
	const statuses = "PATCH /apis/example.com/v1/namespaces/default/colorpolicies/"
	w.mu.Lock()
	slices.Sort(w.requests)
	if want := []string{statuses + "p-1/status", statuses + "p-2/status", statuses + "p-3/status"}; !slices.Equal(w.requests, want) {
		t.Errorf("a change of one policy has cost %q, want %q", w.requests, want)
	}
	w.mu.Unlock()

	// A policy without its target says so, and the one that it took the place of is back.
	route := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "route-4"}}
	if err := w.client.Delete(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	w.until("nothing is painted for a route that is gone", func() bool { return w.painted[rule("route-4")+onSecond] == "" })
	w.until("its policy is told", func() bool { return w.told("p-4") == "route-4 TargetNotFound" })
}
