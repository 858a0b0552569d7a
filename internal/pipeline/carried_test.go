package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

var web = object.Name{Namespace: "a", Name: "web"}

// carriedMarks are those that the table of the Gateway carries.
func carriedMarks(p *pipeline.Pipeline) (marks []uint64) {
	p.Engine.View(func(c *flow.Ctx) {
		for _, r := range flow.All(c, p.RouteConfigurations) {
			if m := r.Carries(); m != nil {
				marks = *m
			}
		}
	})
	return marks
}

// officeProgrammed is what the policy says of the Gateway.
func officeProgrammed(t *testing.T, p *pipeline.Pipeline) string {
	t.Helper()
	out := "nothing"
	p.Engine.View(func(c *flow.Ctx) {
		s, _ := flow.Get(c, p.AuthPolicyStatus, object.Name{Namespace: "a", Name: "office"})
		for _, cond := range s.Ancestors[0].Conditions {
			if cond.Type == "Programmed" {
				out = fmt.Sprintf("%s %s: %s", cond.Status, cond.Reason, cond.Message)
			}
		}
	})
	return out
}

// Whoever reads Programmed relies on it that nobody passes whom the policy stops: one proxy that
// has not the newest version is enough for False.
func TestPolicyIsProgrammedWhenAllProxiesHaveIt(t *testing.T) {
	p := guardedPipeline(3)
	say := func(said *xds.Carried, rejected ...xds.Rejected) *flow.Commit {
		return p.Update(func(tx *flow.Tx) {
			p.TakeFeedback(tx, web, xds.State{Connected: 3, Carried: said, Rejected: rejected})
		})
	}
	want := func(when, prefix string) {
		t.Helper()
		if got := officeProgrammed(t, p); !strings.HasPrefix(got, prefix) {
			t.Errorf("%s it says %q, want %q", when, got, prefix)
		}
	}
	p.Apply(source.Batch{Set: []source.Object{officePolicy("Gateway", "web", 1)}})
	want("before any answer", "False Pending: Waiting for a proxy of Gateway a/web")
	first := carriedMarks(p)
	say(&xds.Carried{Proxies: 3, Marks: first, Lacking: map[uint64]int{first[0]: 1}})
	want("with one behind", "False Pending: Waiting for proxies of Gateway a/web: 1 of 3 have not acknowledged the policy")
	say(&xds.Carried{Proxies: 3, Marks: first})
	want("with all", "True Programmed")

	p.Apply(source.Batch{Set: []source.Object{officePolicy("Gateway", "web", 2)}})
	want("when it has changed", "False Pending")
	second := carriedMarks(p)
	refusal := xds.Rejected{Ref: xds.Ref{Type: envoy.Routes, Name: "http-8080"}, Message: "no such filter", ServingOld: true}
	say(&xds.Carried{Proxies: 3, Marks: second, Lacking: map[uint64]int{second[0]: 3}}, refusal)
	want("when it is refused", "False Invalid: Envoy refuses what the policy is for, and the last version that it accepted stays in force: no such filter")
	say(&xds.Carried{Proxies: 3, Marks: second})
	want("when all have it", "True Programmed")
	// The proxies of another Gateway, or of none, say nothing of it.
	p.Update(func(tx *flow.Tx) { p.DropFeedback(tx, web) })
	want("without proxies", "False Pending")
}

// An edit of a route is nothing to policies: neither their statuses nor what tables carry.
func TestRouteEditIsNothingToPolicies(t *testing.T) {
	p := guardedPipeline(50)
	p.Apply(source.Batch{Set: []source.Object{officePolicy("Gateway", "web", 1)}})
	marks := carriedMarks(p)
	p.Update(func(tx *flow.Tx) {
		p.TakeFeedback(tx, web, xds.State{Connected: 1, Carried: &xds.Carried{Proxies: 1, Marks: marks}})
	})
	route := &gwv1.HTTPRoute{}
	route.Namespace, route.Name = "a", "r7"
	route.Spec.ParentRefs = []gwv1.ParentReference{{Name: "web"}}
	route.Spec.Hostnames = []gwv1.Hostname{"h7.test", "more.test"}
	commit := p.Apply(source.Batch{Set: []source.Object{route}})
	if n := len(flow.Changes(commit, p.AuthPolicyStatus)); n != 0 {
		t.Errorf("%d statuses of policies have changed", n)
	}
	if got := officeProgrammed(t, p); !strings.HasPrefix(got, "True Programmed") {
		t.Error(got)
	}
	if after := carriedMarks(p); fmt.Sprint(after) != fmt.Sprint(marks) {
		t.Error("the table carries other marks")
	}
}

// An edit of keys is an edit of the policy: who relies on Programmed after a rotation relies on
// it that the old key is gone.
func TestEveryVersionHasItsMark(t *testing.T) {
	seen := map[uint64]bool{}
	for n := range 3 {
		p := guardedPipeline(1)
		p.Apply(source.Batch{Set: []source.Object{officePolicy("Gateway", "web", n)}})
		marks := carriedMarks(p)
		if len(marks) != 1 || seen[marks[0]] {
			t.Errorf("version %d has the marks %v", n, marks)
		}
		seen[marks[0]] = true
		again := guardedPipeline(2) // another replica
		again.Apply(source.Batch{Set: []source.Object{officePolicy("Gateway", "web", n)}})
		if fmt.Sprint(carriedMarks(again)) != fmt.Sprint(marks) {
			t.Errorf("version %d has other marks elsewhere", n)
		}
	}
}
