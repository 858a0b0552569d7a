package kube

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/file"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// TestSameAsFiles protects whoever moves manifests into a cluster, or out of it: what becomes of 5,000 routes is byte for byte
// what files give, with all that the API server adds and fills in.
func TestSameAsFiles(t *testing.T) {
	slow.Skip(t)
	const routes = 5000
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("gateway.yaml", `{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehouse}, spec: {controllerName: gatehouse.dev/controller}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: gw, namespace: shop},
 spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 8080, protocol: HTTP}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: app, namespace: shop}, spec: {ports: [{port: 80}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: app, namespace: shop, labels: {kubernetes.io/service-name: app}},
 addressType: IPv4, endpoints: [{addresses: [192.0.2.1]}], ports: [{port: 8081}]}
`)
	for n := range routes {
		write(fmt.Sprintf("r%d.yaml", n), fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r%d, namespace: shop},
spec: {parentRefs: [{name: gw}], hostnames: [h%d.test], rules: [{
  matches: [{path: {value: /p%d}}, {headers: [{name: x, value: one}]}],
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-change, value: "1"}]}}, {type: CORS, cors: {allowOrigins: ["*"]}}],
  backendRefs: [{name: app, port: 80}]}]}}`, n, n, n%10))
	}
	files, err := file.New(file.Options{Paths: []string{dir}, Experimental: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	first := make(chan source.Batch, 1)
	running.Go(func() {
		_ = files.Run(ctx, func(b source.Batch) { first <- b })
	})
	fromFiles := <-first
	if len(fromFiles.Set) != routes+5 {
		t.Fatalf("%d objects are read: %.2000v", len(fromFiles.Set), fromFiles)
	}
	cancel()

	server := newCluster(t, apiserver.Options{Channel: "experimental"})
	objects := make(chan client.Object)
	for range 8 {
		running.Go(func() {
			for o := range objects {
				if err := server.client.Create(t.Context(), o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	// Namespaces come before what is in them.
	begun := time.Now()
	for _, o := range fromFiles.Set {
		if o.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
			server.create(t, o.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy of one
		}
	}
	for _, o := range fromFiles.Set {
		if o.GetObjectKind().GroupVersionKind().Kind != "Namespace" {
			objects <- o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of one
		}
	}
	close(objects)
	running.Wait()
	t.Logf("%d objects are in the cluster after %s", len(fromFiles.Set), time.Since(begun).Round(time.Second))
	r, _ := read(t, server.Config, Options{})

	// A listener has its Gateway's UID, by which proxies know requests that go round. No two API servers give the same.
	for _, o := range r.batches[0].Set {
		for _, f := range fromFiles.Set {
			if gw, is := o.(*gwv1.Gateway); is && source.KeyOf(f) == source.KeyOf(gw) {
				gw.UID = f.GetUID()
			}
		}
	}
	want, got := versions(fromFiles), versions(r.batches[0])
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 3 {
		t.Errorf("of %d resources, these differ:\n%s", len(want), diff)
	}
	t.Logf("%d resources are the same", len(want))
}

// versions are those of all that proxies are sent, by type and name. A version is a hash of the bytes.
func versions(b source.Batch) map[string]string {
	o := pipeline.Local(pipeline.ControllerName, "", []string{"127.0.0.1"}, nil)
	o.NoProxies = true
	p := pipeline.New(o)
	out := map[string]string{}
	for _, u := range p.Updates(p.Apply(b)) {
		for _, r := range u.Set {
			out[fmt.Sprint(u.Gateway, r.Type, r.Name)] = r.Version
		}
	}
	return out
}
