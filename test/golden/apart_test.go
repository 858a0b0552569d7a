package golden

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// TestFleetsApart holds the objects of fleets that a process with the role Infrastructure alone makes, which reads neither
// Secrets nor routes nor policies, against those of a process that reads everything, byte for byte.
func TestFleetsApart(t *testing.T) {
	fleets, counting := 0, 0
	for _, path := range paths(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := read(t, path)
			all := f.load(t)
			all.Set = append(all.Set, further(all.Set)...)
			some := all
			some.Set = nil
			for _, o := range all.Set {
				if kind.All.OfFleets().OfObject(o) != nil {
					some.Set = append(some.Set, o)
				}
			}
			want := rendered(t, all, nil)
			got := rendered(t, some, want)
			for _, g := range want {
				fleets += min(1, len(g.Ports))
				if g.Limits {
					counting++
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-together +apart:\n%s", diff)
			}
		})
	}
	if fleets < 100 || counting < 50 {
		t.Errorf("there are %d fleets, of which %d count requests; that is too few to tell", fleets, counting)
	}
}

// further are a GatewayClass, and a policy for each listener by which requests are counted for all proxies together: a
// part of the fleet depends on it.
func further(objects []source.Object) []source.Object {
	out := []source.Object{&gwv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: pipeline.StandaloneClass}, Spec: gwv1.GatewayClassSpec{ControllerName: pipeline.ControllerName},
	}}
	for _, o := range objects {
		if gw, ok := o.(*gwv1.Gateway); ok {
			for _, l := range gw.Spec.Listeners[:min(1, len(gw.Spec.Listeners))] {
				p := &v1alpha1.RateLimitPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: gw.Namespace, Name: "together-" + gw.Name}}
				p.Spec.TargetRefs = []gwv1.LocalPolicyTargetReferenceWithSectionName{{
					LocalPolicyTargetReference: gwv1.LocalPolicyTargetReference{Group: gwv1.GroupName, Kind: "Gateway", Name: gwv1.ObjectName(gw.Name)}, SectionName: &l.Name,
				}}
				p.Spec.Limits = map[string]v1alpha1.RateLimit{"all": {Scope: v1alpha1.GlobalScope, Rates: []v1alpha1.Rate{{Limit: 10, Window: "1m"}}}}
				out = append(out, p)
			}
		}
	}
	return out
}

// rendering is what a fleet is made from, and its objects.
type rendering struct {
	*infra.Gateway
	Objects string
}

// rendered returns the fleets that Gateways have in a cluster: as one process makes them, or as one makes them that is told what
// is asked of them by another.
func rendered(t *testing.T, b source.Batch, by map[object.Name]rendering) map[object.Name]rendering {
	t.Helper()
	options := pipeline.Provisioned(pipeline.ControllerName, "/authorities", nil)
	options.FleetsAlone = by != nil
	p := pipeline.New(options)
	p.Apply(b)
	p.Update(func(tx *flow.Tx) {
		for name, g := range by {
			p.SetAsked(tx, name, new(g.Asked()))
		}
	})
	failed(t, p)
	out := map[object.Name]rendering{}
	p.Engine.View(func(c *flow.Ctx) {
		for name, g := range flow.All(c, p.Infrastructure) {
			objects, err := infra.Render(infra.Options{ControllerName: pipeline.ControllerName, Image: "gatehouse", ControllerService: "gatehouse"}, g)
			text, _ := json.Marshal(objects)
			if err != nil {
				text = []byte(err.Error())
			}
			out[name] = rendering{g, string(text)}
		}
	})
	return out
}
