package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
)

// fetchWorld looks at what a policy p with the rules of a text makes of key sets.
type fetchWorld struct {
	*world
	t *testing.T
}

func newFetchWorld(t *testing.T, rules string, more ...string) fetchWorld {
	t.Helper()
	w, _ := authWorld(t, rules, more...)
	return fetchWorld{w, t}
}

func (w fetchWorld) learn(answers map[keyset.Key]*keyset.Answer) {
	w.engine.Update(func(tx *flow.Tx) {
		for k, a := range answers {
			if a == nil {
				w.in.KeySets.Delete(tx, k)
			} else {
				w.in.KeySets.Set(tx, k, *a)
			}
		}
	})
}

func (w fetchWorld) look() (passes string, accepted metav1.Condition, waits []string) {
	w.engine.View(func(c *flow.Ctx) {
		gateway := object.Name{Namespace: "default", Name: "g"}
		p, _ := flow.Get(c, w.graph.AuthPolicies, object.Name{Namespace: "default", Name: "p"})
		list, _ := flow.Get(c, w.graph.AuthAncestors, p.Name)
		accepted, waits = w.graph.Fetching(c, p, list[0])
		if in := w.graph.Auth.OnListener(c, ListenerOf(gateway, object.Name{}, "http")); in != nil {
			a := w.graph.Access(c, gateway, in.Effective)
			passes = accessText(a)
			for _, token := range a.Tokens {
				passes += "=" + token.JWKS
			}
		}
	})
	return passes, accepted, waits
}

// wanted are the sets that the Gateway wants, by URL and reach.
func (w fetchWorld) wanted() (out []keyset.Key) {
	w.engine.View(func(c *flow.Ctx) {
		w.graph.KeySets(c, object.Name{Namespace: "default", Name: "g"}, func(k keyset.Key) { out = append(out, k) })
	})
	return out
}

// By a rule whose keys are fetched nobody passes until there are some, and those are in force
// for as long as there are; the condition says what is the matter.
func TestFetchedKeys(t *testing.T) {
	w := newFetchWorld(t, "authentication: {a: {jwt: {issuer: 'https://id.example'}}, b: {jwt: {issuer: b, jwks: {uri: 'https://b.example/keys'}}}}")
	a := keyset.Key{Location: keyset.Location{Issuer: "https://id.example"}}
	b := keyset.Key{Location: keyset.Location{URI: "https://b.example/keys"}}
	if got := w.wanted(); !slices.Equal(got, []keyset.Key{a, b}) {
		t.Fatalf("wanted: %v", got)
	}
	check := func(when, passes, status, message string, waiting int) {
		t.Helper()
		got, accepted, waits := w.look()
		if got != passes || string(accepted.Status) != status || !strings.Contains(accepted.Message, message) || len(waits) != waiting {
			t.Errorf("%s: %q passes, %s: %s; waits for %q", when, got, accepted.Status, accepted.Message, waits)
		}
	}
	check("before", "nobody", "True", "", 2)
	w.learn(map[keyset.Key]*keyset.Answer{a: {Keys: "A"}})
	check("with one", "https://id.example=A", "True", "", 1)
	w.learn(map[keyset.Key]*keyset.Answer{b: {Problem: "https://b.example/keys answered 404 (text/html)"}})
	check("with one, and without another", "https://id.example=A", "False",
		"spec.authentication[b].jwt: the keys of the issuer can't be fetched, and none are known: https://b.example/keys answered 404 (text/html)", 0)
	w.learn(map[keyset.Key]*keyset.Answer{b: {Keys: "B"}})
	check("with both", "https://id.example b=A=B", "True", "", 0)
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w.learn(map[keyset.Key]*keyset.Answer{a: {Keys: "A", Problem: "https://id.example/x answered 503 (text/plain)", Since: since}})
	check("with an old one", "https://id.example b=A=B", "True", "answered 503 (text/plain). Those of 2026-01-02T03:04:05Z stay in force", 0)
	if _, accepted, _ := w.look(); condition.EventReason(accepted) != "KeysNotFetched" {
		t.Errorf("no Event for %+v", accepted)
	}
	w.learn(map[keyset.Key]*keyset.Answer{a: nil})
	check("without", "b=B", "True", "", 1)
}

// What no fetch could be made for is a mistake of the policy, and asks for nothing.
func TestLocationsThatCantBe(t *testing.T) {
	for rules, problem := range map[string]string{
		"authentication: {a: {jwt: {issuer: staff}}}":                                          `spec.authentication[a].jwt.issuer is "staff": its keys are to be asked for there, since jwks is missing, but it is no URL such as`,
		"authentication: {a: {jwt: {issuer: 'http://id.example'}}}":                            `it is no https URL`,
		"authentication: {a: {jwt: {issuer: i, jwks: {uri: 'https://a:secret@id.example/'}}}}": "which has a user or a password in it",
		"authentication: {a: {jwt: {issuer: i, jwks: {}}}}":                                    "exactly one of uri, inline",
	} {
		w := newFetchWorld(t, rules)
		passes, accepted, _ := w.look()
		if passes != "nobody" || accepted.Status != metav1.ConditionFalse || !strings.Contains(accepted.Message, problem) || len(w.wanted()) > 0 {
			t.Errorf("%s: %q passes: %s", rules, passes, accepted.Message)
		}
	}
}

// What a class allows is for its Gateways, and no others.
func TestReachOfClass(t *testing.T) {
	const rules = "authentication: {a: {jwt: {issuer: 'https://id.corp'}}}"
	w := newFetchWorld(t, rules)
	k := w.wanted()[0]
	if k.Reach != keyset.Public {
		t.Errorf("without parameters: %q", k.Reach)
	}
	w.set(t, decode(t, `
kind: GatewayClass
metadata: {name: ours}
spec: {controllerName: gatehouse.dev/controller, parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: c, namespace: default}}
---
kind: GatewayParameters
metadata: {namespace: default, name: c}
spec: {allow: {keySets: [{names: ["*.corp"], addresses: [10.1.0.0/16]}]}}
`)...)
	allowed := w.wanted()[0]
	if allowed.Reach == keyset.Public || allowed.Location != k.Location {
		t.Errorf("with parameters: %+v", allowed)
	}
}

// A namespace has a bound, and what it had stays when it asks for more.
func TestKeySetsOfANamespace(t *testing.T) {
	var more []string
	for i := range auth.MaxKeySets {
		more = append(more, fmt.Sprintf(`kind: AuthPolicy
metadata: {namespace: default, name: o%d}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: none}], authentication: {x: {jwt: {issuer: "https://%d.example"}}}}`, i, i))
	}
	more = append(more, "kind: AuthPolicy\nmetadata: {namespace: other, name: p}\nspec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}], authentication: {x: {jwt: {issuer: 'https://y.example'}}}}")
	w := newFetchWorld(t, "authentication: {x: {jwt: {issuer: 'https://x.example'}}}", more[1:]...)
	if _, accepted, _ := w.look(); accepted.Status != metav1.ConditionTrue {
		t.Errorf("within the bound: %s", accepted.Message)
	}
	w.set(t, decode(t, more[0])...)
	passes, accepted, _ := w.look()
	if passes != "nobody" || !strings.Contains(accepted.Message, "is one more than the 16 issuers") || len(w.wanted()) > 0 {
		t.Errorf("%q passes: %s", passes, accepted.Message)
	}
}
