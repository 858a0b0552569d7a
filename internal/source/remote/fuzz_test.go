package remote

import (
	"slices"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// FuzzResponse protects a client from what any server may send: nothing makes it panic, what is in
// force is valid or a stand-in, and what is refused is told with its object.
func FuzzResponse(f *testing.F) {
	text := func(s string) *anypb.Any {
		a, err := anypb.New(wrapperspb.String(s))
		if err != nil {
			f.Fatal(err)
		}
		return a
	}
	const url, name = "gateway.networking.k8s.io/v1/HTTPRoute", "default/a"
	for _, r := range []*discoveryv3.DeltaDiscoveryResponse{
		{},
		{TypeUrl: "no/such/Kind"},
		{TypeUrl: url, RemovedResources: []string{name, "", "/", "a/b/c"}},
		{TypeUrl: url, Resources: []*discoveryv3.Resource{{Name: name}, {Name: name, Version: "1", Resource: text("")}, {}}},
		{TypeUrl: url, Resources: []*discoveryv3.Resource{{Name: name, Version: "1", Resource: text(`{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"name":"a","namespace":"default","generation":3},"spec":{"hostnames":["a.test"]}}`)}}},
		{TypeUrl: url, Resources: []*discoveryv3.Resource{{Name: name, Version: "1", Resource: text(`{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"name":"b","generation":-1},"spec":{"hostname":[{}]}}`)}}},
		{TypeUrl: "gatehouse.dev/v1alpha1/AuthPolicy", Resources: []*discoveryv3.Resource{{Name: name, Version: "1", Resource: text(`{"apiVersion":"gatehouse.dev/v1alpha1","kind":"AuthPolicy","metadata":{"name":"a","namespace":"default"},"spec":{"targetRefs":[{"kind":"Gateway","name":"gw"}],"nonsense":1}}`)}}},
		{TypeUrl: "core/v1/Secret", Resources: []*discoveryv3.Resource{{Name: name, Resource: text(`{"apiVersion":"v1","kind":"Secret","metadata":[]}`)}}},
	} {
		b, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &discoveryv3.DeltaDiscoveryResponse{}
		if proto.Unmarshal(b, r) != nil {
			return
		}
		s, err := New(Options{Address: "a.test:1", Experimental: true})
		if err != nil {
			t.Fatal(err)
		}
		c := &session{Source: s, awaited: map[string]bool{}, changes: map[object.Key]*entry{}}
		for range 2 { // the second time what it has is there already
			if _, err := c.note(r); err != nil {
				t.Fatal(err)
			}
			err := c.complete("1", func(b source.Batch) {
				for _, o := range b.Set {
					if e := s.entries[source.KeyOf(o)]; e == nil || e.object != o || e.object.GetGeneration() < 1 {
						t.Errorf("%s is in force and not known", source.KeyOf(o))
					}
				}
				for _, list := range b.Problems {
					if slices.ContainsFunc(list, func(p source.Problem) bool { return p.Key.IsZero() || p.Message == "" || p.File == "" }) {
						t.Errorf("a problem says not enough: %v", list)
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for key, e := range s.entries {
			if e.object != nil && source.KeyOf(e.object) != key {
				t.Errorf("%s is in force as %s", source.KeyOf(e.object), key)
			}
			if (e.object == nil || e.standIn) && len(e.problems) == 0 {
				t.Errorf("%s is not in force, and nothing is wrong with it", key)
			}
		}
	})
}
