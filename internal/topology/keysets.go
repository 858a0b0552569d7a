package topology

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// maxKeySets is how many locations the AuthPolicies of a namespace may have. Those of the
// older policies count.
const maxKeySets = 16

// location returns where the keys of an issuer are fetched from; false where they are at hand.
func location(in *v1alpha1.JWT) (keyset.Location, bool) {
	switch {
	case in.JWKS == nil:
		return keyset.Location{Issuer: in.Issuer}, true
	case in.JWKS.URI != nil && in.JWKS.Inline == nil && in.JWKS.SecretRef == nil && in.JWKS.ConfigMapRef == nil:
		return keyset.Location{URI: *in.JWKS.URI}, true
	}
	return keyset.Location{}, false
}

// policyRule names a rule of a policy.
type policyRule struct {
	Policy object.Name
	Rule   string
}

func (k policyRule) String() string { return k.Policy.String() + " " + k.Rule }

func (k policyRule) compare(o policyRule) int {
	return cmp.Or(k.Policy.Compare(o.Policy), cmp.Compare(k.Rule, o.Rule))
}

// wished is the set that a rule wants.
type wished struct {
	keyset.Location
	created time.Time
}

// declareKeySets declares where fetching may lead for a Gateway, for those that have more
// than others, and which locations of a namespace are too many.
func (g *Graph) declareKeySets() {
	g.keySetReaches = flow.Map("key-set-reaches", g.Gateways,
		func(_ *flow.Ctx, k object.Name, gw *Gateway, emit func(object.Name, keyset.Reach)) {
			if r := reachOf(gw.Allow); r != keyset.Public {
				emit(k, r)
			}
		}, flow.Equal(flow.Same[keyset.Reach]))
	wishes := flow.Map("key-set-wishes", g.in.AuthPolicies,
		func(_ *flow.Ctx, k object.Name, o *v1alpha1.AuthPolicy, emit func(policyRule, wished)) {
			_, _, rules := authRules(o)
			for name, a := range rules.Authentication {
				l, ok := keyset.Location{}, false
				switch {
				case a.JWT != nil:
					l, ok = location(a.JWT)
				case a.OIDC != nil:
					l, ok = keyset.Location{Issuer: a.OIDC.Issuer}, true
				}
				if ok {
					emit(policyRule{k, name}, wished{l, o.CreationTimestamp.Time})
				}
			}
		}, flow.Equal(flow.Same[wished]))
	byNamespace := flow.NewIndex(wishes, func(k policyRule, _ wished, yield func(string)) { yield(k.Policy.Namespace) }, policyRule.compare)
	g.keySetsOver = flow.Group("key-sets-over-bound", byNamespace,
		func(_ *flow.Ctx, _ string, members flow.Members[policyRule, wished]) (map[keyset.Location]bool, bool) {
			if members.Len() <= maxKeySets {
				return nil, false
			}
			list := make([]wished, 0, members.Len())
			for _, w := range members.All() {
				list = append(list, w)
			}
			slices.SortStableFunc(list, func(a, b wished) int { return a.created.Compare(b.created) })
			taken, over := map[keyset.Location]bool{}, map[keyset.Location]bool{}
			for _, w := range list {
				if taken[w.Location] || len(taken) < maxKeySets {
					taken[w.Location] = true
				} else {
					over[w.Location] = true
				}
			}
			return over, len(over) > 0
		}, flow.Equal(func(a, b map[keyset.Location]bool) bool { return reflect.DeepEqual(a, b) }))
}

// reachOf is where fetching may lead for the Gateways of a class.
func reachOf(allow *v1alpha1.Allow) keyset.Reach {
	if allow == nil {
		return keyset.Public
	}
	list := make([]keyset.Allowed, 0, len(allow.KeySets))
	for _, a := range allow.KeySets {
		entry := keyset.Allowed{Names: slices.Sorted(slices.Values(a.Names))}
		for _, text := range a.Addresses {
			if prefix, err := netip.ParsePrefix(text); err == nil { // they have been checked
				entry.Addresses = append(entry.Addresses, prefix)
			}
		}
		list = append(list, entry)
	}
	return keyset.Beyond(list)
}

// fetched checks a location from which a set is to be fetched, for a kind of credentials; nil where it
// can't be. Discovered says that the issuer is asked for want of anything else.
func (r *authReader) fetched(l keyset.Location, of string, discovered bool) *keyset.Location {
	field := of + ".jwks.uri"
	if l.URI == "" {
		field = of + ".issuer"
	}
	why := l.Check(r.graph.place())
	if over, _ := flow.Get(r.ctx, r.graph.keySetsOver, r.namespace); why == "" && over[l] {
		why = fmt.Sprintf("is one more than the %d issuers and URIs of which the AuthPolicies of a namespace may have the keys fetched", maxKeySets)
	}
	switch {
	case why == "":
		return &l
	case discovered:
		r.problem(field, "is %q: its keys are to be asked for there, since jwks is missing, but it %s", keyset.Told(l.Issuer), why)
	default:
		r.problem(field, "is %q, which %s", keyset.Told(cmp.Or(l.URI, l.Issuer)), why)
	}
	return nil
}

// place is where fetching may lead for all Gateways that allow no more.
func (g *Graph) place() keyset.Reach {
	if g.options.AnyName {
		return keyset.Host
	}
	return keyset.Public
}

// keySet names the set of a location for the routes of a Gateway.
func (g *Graph) keySet(c *flow.Ctx, gateway object.Name, l keyset.Location) keyset.Key {
	reach := g.place()
	if r, ok := flow.Get(c, g.keySetReaches, gateway); ok && reach == keyset.Public {
		reach = r
	}
	return keyset.Key{Location: l, Reach: reach}
}

// Access returns who may pass by what policies say together on a Gateway, as the function
// Access does. It asks for the sets that are fetched.
func (g *Graph) Access(c *flow.Ctx, gateway object.Name, e *EffectiveAuth) *ir.Access {
	return Access(e, func(l keyset.Location) keyset.Answer {
		answer, _ := flow.Get(c, g.in.KeySets, g.keySet(c, gateway, l))
		return answer
	})
}

// token returns the issuer of tokens that the rule accepts, with its keys, and what was fetched of
// it; false where it accepts none.
func (r AuthRule) token(set func(keyset.Location) keyset.Answer) (out ir.TokenIssuer, answer keyset.Answer, ok bool) {
	if r.Token == nil {
		return out, answer, false
	}
	out = *r.Token
	if r.Fetched != nil {
		answer = set(*r.Fetched)
		out.JWKS = answer.Keys
	}
	return out, answer, out.JWKS != ""
}

// KeySets yields the sets that are fetched for the policies of a Gateway. One comes as often
// as it is wanted.
func (g *Graph) KeySets(c *flow.Ctx, gateway object.Name, yield func(keyset.Key)) {
	for name := range flow.Select(c, g.authPoliciesOf, gateway).All() {
		if p, ok := flow.Get(c, g.AuthPolicies, name); ok {
			p.fetches(func(_ string, l keyset.Location, _ *AuthRule) { yield(g.keySet(c, gateway, l)) })
		}
	}
}

// fetches yields the fields of a policy whose sets are fetched, and from where, with the rule.
func (p *AuthPolicy) fetches(yield func(field string, l keyset.Location, r *AuthRule)) {
	_, under, _ := authRules(p.Object)
	for i := range p.Asks {
		r := &p.Asks[i]
		if r.Value.Fetched == nil {
			continue
		}
		of := ".jwt"
		if r.Value.Login != nil {
			of = ".oidc"
		}
		yield(under+".authentication["+strings.TrimPrefix(r.Name, authentication)+"]"+of, *r.Value.Fetched, &r.Value)
	}
}

// FetchedKeys writes the keys that are fetched for a policy, which tell one version of what
// is in force from another.
func (g *Graph) FetchedKeys(c *flow.Ctx, p *AuthPolicy, write func(string)) {
	if !slices.ContainsFunc(p.Asks, func(r policy.Rule[AuthRule]) bool { return r.Value.Fetched != nil }) {
		return
	}
	list, _ := flow.Get(c, g.AuthAncestors, p.Name)
	for _, a := range list {
		p.fetches(func(_ string, l keyset.Location, r *AuthRule) {
			answer, _ := flow.Get(c, g.in.KeySets, g.keySet(c, a.Gateway, l))
			write(answer.Keys)
			if r.Login != nil {
				write(answer.Endpoints.String())
			}
		})
	}
}

// Fetching returns whether a policy is accepted on a Gateway, with what there is to say of the
// sets that are fetched for it, and those that it waits for.
func (g *Graph) Fetching(c *flow.Ctx, p *AuthPolicy, a Ancestor) (accepted metav1.Condition, waits []string) {
	var problems, notes []string
	if a.Accepted.Status == metav1.ConditionTrue && len(p.entries) > 0 {
		a.Accepted = condition.AuthPolicyPartial(p.entries)
	}
	p.fetches(func(field string, l keyset.Location, r *AuthRule) {
		switch answer, ok := flow.Get(c, g.in.KeySets, g.keySet(c, a.Gateway, l)); {
		case !ok:
			waits = append(waits, keyset.Told(l.URL()))
		case answer.Keys == "":
			problems = append(problems, condition.KeySetNotFetched(field, answer.Problem))
		case r.Login != nil && r.Login.with(*r.Token, answer.Endpoints) == nil:
			problems = append(problems, condition.NoLogin(field, l.URL()))
		case answer.Problem != "":
			notes = append(notes, condition.NoteKeySetKept(field, answer.Problem, answer.Since))
		}
	})
	invalid := p.Refused != nil && a.Accepted == *p.Refused
	switch {
	case a.Accepted.Status != metav1.ConditionTrue && !invalid:
		return a.Accepted, nil // the target doesn't exist, or somebody else has it
	case len(problems) > 0:
		return condition.AuthPolicyInvalid(slices.Concat(p.problems, p.entries, problems)), nil
	case len(notes) > 0 && a.Accepted.Status == metav1.ConditionTrue:
		return condition.Noted(a.Accepted, notes...), waits
	}
	return a.Accepted, waits
}
