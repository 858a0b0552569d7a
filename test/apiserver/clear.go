package apiserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// definitionKeys is where etcd has the CustomResourceDefinitions.
const definitionKeys = "/registry/apiextensions.k8s.io/customresourcedefinitions/"

var (
	// ownKeys are written by the server for itself, and go on changing.
	ownKeys = []string{"/registry/leases/kube-system/apiserver-", "/registry/masterleases/", "/registry/peerserverleases/"}
	// deepKeys are of objects that change what the server does, not only what it has:
	// one whose deepKeys have changed is not as it was when they are changed back.
	deepKeys = []string{definitionKeys, "/registry/apiregistration.k8s.io/", "/registry/admissionregistration.k8s.io/"}
)

// state is what a server has.
type state struct {
	stored map[string]entry // by key, without ownKeys
	served []string         // all objects, as the API has them
}

// ownObjects are the last that a server makes for itself, after it is ready.
var ownObjects = []string{
	"configmaps kube-system/kube-apiserver-legacy-service-account-token-tracking",
	"ipaddresses.networking.k8s.io /10.0.0.1", "namespaces /kube-node-lease", "namespaces /kube-public",
	"services default/kubernetes", "servicecidrs.networking.k8s.io /kubernetes",
}

// look returns the state, once the server has made what it makes for itself.
func (m *machine) look(ctx context.Context) (*state, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		served, err := m.objects(ctx)
		if err != nil {
			return nil, err
		}
		missing := slices.DeleteFunc(slices.Clone(ownObjects), func(o string) bool { return slices.Contains(served, o) })
		if len(missing) == 0 {
			stored, err := m.stored(ctx, wholeEntries)
			if err != nil {
				return nil, err
			}
			return &state{stored, served}, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the server doesn't make %q", missing)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (m *machine) stored(ctx context.Context, how reading) (map[string]entry, error) {
	entries, err := m.store.all(ctx, how)
	if err != nil {
		return nil, err
	}
	out := map[string]entry{}
	for _, e := range entries {
		if !hasPrefix(e.Key, ownKeys) {
			out[string(e.Key)] = e
		}
	}
	return out, nil
}

func hasPrefix(key []byte, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(string(key), p) })
}

// clear makes the state that of the start, and fails where that can't be. It doesn't
// ask the API for it: finalizers, namespaces that end, and what is protected would
// each need a controller. The API is asked whether the state is so: a list that
// names no version is never older than what etcd has when it is asked for.
func (m *machine) clear(ctx context.Context) error {
	now, err := m.stored(ctx, onlyKeys)
	if err != nil {
		return err
	}
	for key, e := range now {
		before, known := m.fresh.stored[key]
		switch {
		case known && before.ModRevision == e.ModRevision:
			continue
		case hasPrefix(e.Key, deepKeys):
			return fmt.Errorf("%s has changed", key)
		case !known:
			if err := m.store.call(ctx, "deleterange", entry{Key: e.Key}, nil); err != nil {
				return err
			}
		default:
			delete(now, key) // and so put back
		}
	}
	for key, e := range m.fresh.stored {
		if _, there := now[key]; there {
			continue
		}
		if hasPrefix(e.Key, deepKeys) {
			return fmt.Errorf("%s is gone", key)
		}
		if err := m.store.put(ctx, entry{Key: e.Key, Value: e.Value}); err != nil {
			return err
		}
	}
	served, err := m.objects(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(m.fresh.served, served); diff != "" {
		return fmt.Errorf("what is served is not what was (-at the start):\n%s", diff)
	}
	if now, err = m.stored(ctx, onlyKeys); err != nil {
		return err
	}
	for key, e := range m.fresh.stored {
		e.ModRevision = now[key].ModRevision
		m.fresh.stored[key] = e
	}
	return nil
}

// objects lists what the API serves.
func (m *machine) objects(ctx context.Context) ([]string, error) {
	config := rest.CopyConfig(m.config)
	config.WarningHandler = rest.NoWarnings{} // that Endpoints are deprecated
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, err
	}
	reader, err := metadata.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, err
	}
	lists, err := kinds.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") || !slices.Contains(kind.Verbs, "watch") { // computed, not stored
				continue
			}
			resource := version.WithResource(kind.Name)
			objects, err := reader.Resource(resource).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", resource.GroupResource(), err)
			}
			for _, o := range objects.Items {
				out[resource.GroupResource().String()+" "+o.Namespace+"/"+o.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(out)), nil
}
