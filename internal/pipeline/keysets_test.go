package pipeline_test

import (
	"bytes"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// issuerPolicy accepts tokens of an issuer whose keys are found by discovery.
func issuerPolicy(name, target, issuer string) *v1alpha1.AuthPolicy {
	o := officePolicy("HTTPRoute", target, 0)
	o.Name, o.Spec.Authorization = name, nil
	o.Spec.Authentication = map[string]v1alpha1.Authentication{"staff": {JWT: &v1alpha1.JWT{Issuer: issuer}}}
	return o
}

// Keys that are fetched get to the hosts of the policies that want them, and to no others; a set
// that several want is asked for once, and one that nobody wants any more no longer.
func TestFetchedKeysWakeTheirPolicies(t *testing.T) {
	p := guardedPipeline(3)
	one, other := "https://one.test", "https://other.test"
	p.Apply(source.Batch{Set: []source.Object{issuerPolicy("a", "r0", one), issuerPolicy("b", "r1", one), issuerPolicy("c", "r2", other)}})
	k := keyset.Key{Location: keyset.Location{Issuer: one}, Reach: keyset.Host}
	keys, changed := p.AskedKeySets()
	if !changed || len(keys) != 2 || !slices.Contains(keys, k) {
		t.Fatalf("asked for: %v", keys)
	}
	programmed := func(policy string) (out metav1.Condition) {
		p.Engine.View(func(c *flow.Ctx) {
			s, _ := flow.Get(c, p.AuthPolicyStatus, object.Name{Namespace: "a", Name: policy})
			out = s.Ancestors[0].Conditions[1]
		})
		return out
	}
	served := func(text string) (found bool) {
		p.Engine.View(func(c *flow.Ctx) {
			for _, r := range flow.All(c, p.RouteConfigurations) {
				found = found || bytes.Contains(r.Body(), []byte(text))
			}
		})
		return found
	}
	const waits = "Nobody passes by tokens whose keys are being fetched: https://one.test/.well-known/openid-configuration"
	if got := programmed("a"); got.Status != metav1.ConditionFalse || got.Message != waits {
		t.Errorf("before: %+v", got)
	}
	commit := p.Update(func(tx *flow.Tx) {
		p.TakeKeySets(tx, map[keyset.Key]*keyset.Answer{k: {Keys: `{"keys":["the-first"]}`}})
	})
	if n := len(flow.Changes(commit, p.Listeners)); n != 0 {
		t.Errorf("%d listeners have changed", n)
	}
	if !served("the-first") || programmed("a").Message == waits {
		t.Errorf("after: %+v", programmed("a"))
	}
	before := marksOf(p)
	p.Update(func(tx *flow.Tx) {
		p.TakeKeySets(tx, map[keyset.Key]*keyset.Answer{k: {Keys: `{"keys":["the-second"]}`}})
	})
	if served("the-first") || !served("the-second") {
		t.Error("a rotation changes nothing")
	}
	if slices.Equal(before, marksOf(p)) {
		t.Error("proxies that have the old keys count as having the new ones")
	}
	p.Update(func(tx *flow.Tx) {
		p.TakeKeySets(tx, map[keyset.Key]*keyset.Answer{k: {Keys: `{"keys":["the-second"]}`, Problem: "it is down"}})
	})
	if !served("the-second") {
		t.Error("keys that can't be fetched anew are gone")
	}
	if _, changed := p.AskedKeySets(); changed {
		t.Error("answers change what is asked for")
	}
	p.Apply(source.Batch{Deleted: []object.Key{
		{Kind: kind.AuthPolicy, Name: object.Name{Namespace: "a", Name: "a"}}, {Kind: kind.AuthPolicy, Name: object.Name{Namespace: "a", Name: "b"}},
	}})
	if keys, changed := p.AskedKeySets(); !changed || slices.Contains(keys, k) || len(keys) != 1 {
		t.Errorf("without its policies: %v", keys)
	}
}

// marksOf are the marks that the tables carry.
func marksOf(p *pipeline.Pipeline) (marks []uint64) {
	p.Engine.View(func(c *flow.Ctx) {
		for _, r := range flow.All(c, p.RouteConfigurations) {
			if list := r.Carries(); list != nil {
				marks = append(marks, *list...)
			}
		}
	})
	return marks
}
