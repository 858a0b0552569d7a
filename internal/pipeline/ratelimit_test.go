package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// limitPolicy lets n requests through in a minute, for each client.
func limitPolicy(kind, name string, n int32, counters ...string) *v1alpha1.RateLimitPolicy {
	o := &v1alpha1.RateLimitPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "limits"}}
	target := gwv1.LocalPolicyTargetReferenceWithSectionName{}
	target.Group, target.Kind, target.Name = gwv1.GroupName, gwv1.Kind(kind), gwv1.ObjectName(name)
	o.Spec.TargetRefs = []gwv1.LocalPolicyTargetReferenceWithSectionName{target}
	o.Spec.Limits = map[string]v1alpha1.RateLimit{"per-client": {Rates: []v1alpha1.Rate{{Limit: n, Window: "1m"}}, Counters: counters}}
	return o
}

// An edit of a limit is one of its filter, however many routes there are: hosts say that a limit
// is in force, and not what it is.
func TestLimitEditTouchesItsFilterAlone(t *testing.T) {
	p := guardedPipeline(1000)
	commit := p.Apply(source.Batch{Set: []source.Object{limitPolicy("Gateway", "web", 1, "client.address")}})
	if n := len(flow.Changes(commit, p.Listeners)); n != 0 {
		t.Errorf("the first limit changes %d listeners", n)
	}
	if n := len(flow.Changes(commit, p.LimitFilters)); n != 1 {
		t.Errorf("the first limit changes %d filters", n)
	}
	commit = p.Apply(source.Batch{Set: []source.Object{limitPolicy("Gateway", "web", 2, "client.address")}})
	if n := len(flow.Changes(commit, p.Hosts)); n != 0 {
		t.Errorf("an edit changes %d hosts", n)
	}
	var sent []xds.Ref
	for _, u := range p.Updates(commit) {
		for _, r := range u.Set {
			if r.Type == envoy.Routes {
				continue // for the mark of the policy, which no proxy gets
			}
			sent = append(sent, xds.Ref{Type: r.Type, Name: r.Name})
		}
		if len(u.Remove) > 0 {
			t.Errorf("an edit removes %v", u.Remove)
		}
	}
	if len(sent) != 1 || sent[0].Type != envoy.Extensions {
		t.Errorf("an edit changes %v", sent)
	}
	for _, ch := range flow.Changes(commit, p.RouteConfigurations) {
		if ch.Old.Version != ch.New.Version {
			t.Errorf("an edit sends the table %v", ch.Key)
		}
	}
	// The other way round, too: what is edited beside a limit refills nothing.
	route := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "r7"}}
	route.Spec.ParentRefs = []gwv1.ParentReference{{Name: "web"}}
	route.Spec.Hostnames = []gwv1.Hostname{"h7.test", "more.test"}
	commit = p.Apply(source.Batch{Set: []source.Object{route}})
	if n := len(flow.Changes(commit, p.LimitFilters)); n != 0 {
		t.Errorf("an edit of a route changes %d filters", n)
	}
	commit = p.Apply(source.Batch{Deleted: []object.Key{{Kind: kind.RateLimitPolicy, Name: object.Name{Namespace: "a", Name: "limits"}}}})
	if n := len(flow.Changes(commit, p.LimitFilters)); n != 1 {
		t.Errorf("the end of a limit changes %d filters", n)
	}
}

// limitsProgrammed is what the policy says of the Gateway.
func limitsProgrammed(p *pipeline.Pipeline) (out string) {
	p.Engine.View(func(c *flow.Ctx) {
		s, _ := flow.Get(c, p.RateLimitPolicyStatus, object.Name{Namespace: "a", Name: "limits"})
		for _, cond := range s.Ancestors[0].Conditions {
			if cond.Type == "Programmed" {
				out = fmt.Sprintf("%s %s: %s", cond.Status, cond.Reason, cond.Message)
			}
		}
	})
	return out
}

// A limit holds when every proxy has its filter, and not merely the table that names it.
func TestLimitIsProgrammedWhenAllProxiesHaveIt(t *testing.T) {
	p := guardedPipeline(3)
	p.Apply(source.Batch{Set: []source.Object{limitPolicy("Gateway", "web", 1, "client.address")}})
	var marks []uint64
	var filter string
	p.Engine.View(func(c *flow.Ctx) {
		for k, r := range flow.All(c, p.LimitFilters) {
			marks, filter = *r.Carries(), k.Name
		}
	})
	if len(marks) != 1 {
		t.Fatalf("the filter carries %v", marks)
	}
	for _, c := range []struct {
		lacking  map[uint64]int
		rejected []xds.Rejected
		want     string
	}{
		{map[uint64]int{marks[0]: 1}, nil, "False Pending"},
		{nil, nil, "True Programmed"},
		{map[uint64]int{marks[0]: 2}, []xds.Rejected{{Ref: xds.Ref{Type: envoy.Extensions, Name: filter}, Message: "no", ServingOld: true}}, "False Invalid: Envoy refuses"},
		{nil, []xds.Rejected{{Ref: xds.Ref{Type: envoy.Extensions, Name: "gatehouse.limits.none"}, Message: "no"}}, "True Programmed"},
	} {
		p.Update(func(tx *flow.Tx) {
			p.TakeFeedback(tx, web, xds.State{Connected: 2, Carried: &xds.Carried{Proxies: 2, Marks: marks, Lacking: c.lacking}, Rejected: c.rejected})
		})
		if got := limitsProgrammed(p); !strings.HasPrefix(got, c.want) {
			t.Errorf("it says %q, want %q", got, c.want)
		}
	}
}

// BenchmarkLimitEdit is the control plane's part of an edit of a RateLimitPolicy among 1,000 routes.
func BenchmarkLimitEdit(b *testing.B) {
	p := guardedPipeline(1000)
	n := int32(0)
	for b.Loop() {
		n++
		p.Apply(source.Batch{Set: []source.Object{limitPolicy("Gateway", "web", n, "client.address")}})
	}
}
