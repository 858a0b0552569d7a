package cluster

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/gatehouse-dev/gatehouse/internal/configserver"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote"
)

// TestPublishedCluster protects edge boxes of a cluster: they have its objects, and what is changed and
// deleted there, of the namespaces that they may see; Secrets only where the server says so, and none of the
// platform's.
func TestPublishedCluster(t *testing.T) {
	in := install(t)
	in.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: other}}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: r}, spec: {hostnames: [a.test]}}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: other, name: r}}`,
		`{apiVersion: v1, kind: Secret, metadata: {namespace: team, name: s}, stringData: {a: b}}`,
		`{apiVersion: v1, kind: Secret, metadata: {namespace: team, name: release}, type: helm.sh/release.v1, stringData: {a: b}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team, name: c}, data: {a: b}}`,
	)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	client := func(secrets bool) (has func(object.Kind, string, string) source.Object) {
		t.Helper()
		log := slog.New(slog.DiscardHandler)
		p, err := NewPublished(ctx, PublishedOptions{REST: in.Config, Namespaces: []string{"team"}, Secrets: secrets, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		server := configserver.New(configserver.Options{
			Kinds: p.Kinds, Experimental: p.Experimental, Log: log,
			Access: configserver.Access{Anybody: true, Rights: configserver.Rights{Namespaces: []string{"team"}, Secrets: secrets}},
		})
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		loaded := make(chan struct{})
		first := sync.OnceFunc(func() { close(loaded) })
		running.Go(func() {
			if err := p.Run(ctx, func(b source.Batch) { server.Apply(b); first() }); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
		<-loaded
		running.Go(func() {
			if err := server.Serve(ctx, lis, insecure.NewCredentials()); err != nil {
				t.Error(err)
			}
		})
		r, err := remote.New(remote.Options{Address: lis.Addr().String(), TLS: remote.TLS{Plaintext: true}, Experimental: p.Experimental})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		objects := map[object.Key]source.Object{}
		told := make(chan struct{})
		tell := sync.OnceFunc(func() { close(told) })
		running.Go(func() {
			_ = r.Run(ctx, func(b source.Batch) {
				mu.Lock()
				defer mu.Unlock()
				for of, list := range b.Problems {
					if len(list) > 0 && ctx.Err() == nil {
						t.Errorf("%q: %v", of, list)
					}
				}
				for _, key := range b.Deleted {
					delete(objects, key)
				}
				for _, o := range b.Set {
					objects[source.KeyOf(o)] = o
				}
				tell()
			})
		})
		<-told
		return func(k object.Kind, namespace, name string) source.Object {
			mu.Lock()
			defer mu.Unlock()
			return objects[object.Key{Kind: k, Name: object.Name{Namespace: namespace, Name: name}}]
		}
	}
	plain, whole := client(false), client(true)
	if plain(kind.HTTPRoute, "team", "r") == nil || plain(kind.ConfigMap, "team", "c") == nil || plain(kind.Namespace, "", "team") == nil {
		t.Error("what is in the namespace is not published")
	}
	if plain(kind.HTTPRoute, "other", "r") != nil || plain(kind.Namespace, "", "other") != nil || plain(kind.Secret, "team", "s") != nil {
		t.Error("more is published than may be seen")
	}
	if whole(kind.Secret, "team", "s") == nil || whole(kind.Secret, "team", "release") != nil {
		t.Error("Secrets are published that are the platform's, or none")
	}
	in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: r}, spec: {hostnames: [b.test]}}`)
	in.until("the edit is published", func() bool {
		o := plain(kind.HTTPRoute, "team", "r")
		return o != nil && o.GetGeneration() == 2
	})
	if err := in.client.Delete(t.Context(), whole(kind.HTTPRoute, "team", "r").DeepCopyObject().(source.Object)); err != nil {
		t.Fatal(err)
	}
	in.until("the deletion is published", func() bool { return plain(kind.HTTPRoute, "team", "r") == nil })
}
