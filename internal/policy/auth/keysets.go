package auth

import (
	"cmp"
	"fmt"
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
	"github.com/gatehouse-dev/gatehouse/internal/policy/inherited"
)

// MaxKeySets is how many locations the AuthPolicies of a namespace may have. Those of the
// older policies count.
const MaxKeySets = 16

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

// wished is the set that a rule wants.
type wished struct {
	keyset.Location
	created time.Time
}

// KeySetsOver declares which locations of a namespace are too many.
func KeySetsOver(policies flow.Table[object.Name, *v1alpha1.AuthPolicy]) flow.Table[string, map[keyset.Location]bool] {
	wishes := flow.Map("key-set-wishes", policies,
		func(_ *flow.Ctx, k object.Name, o *v1alpha1.AuthPolicy, emit func(inherited.RuleKey, wished)) {
			_, _, rules := layerOf(o)
			for name, a := range rules.Authentication {
				l, ok := keyset.Location{}, false
				switch {
				case a.JWT != nil:
					l, ok = location(a.JWT)
				case a.OIDC != nil:
					l, ok = keyset.Location{Issuer: a.OIDC.Issuer}, true
				}
				if ok {
					emit(inherited.RuleKey{Policy: k, Rule: name}, wished{l, o.CreationTimestamp.Time})
				}
			}
		}, flow.Equal(flow.Same[wished]))
	byNamespace := flow.NewIndex(wishes, func(k inherited.RuleKey, _ wished, yield func(string)) { yield(k.Policy.Namespace) }, inherited.RuleKey.Compare)
	return flow.Group("key-sets-over-bound", byNamespace,
		func(_ *flow.Ctx, _ string, members flow.Members[inherited.RuleKey, wished]) (map[keyset.Location]bool, bool) {
			if members.Len() <= MaxKeySets {
				return nil, false
			}
			list := make([]wished, 0, members.Len())
			for _, w := range members.All() {
				list = append(list, w)
			}
			slices.SortStableFunc(list, func(a, b wished) int { return a.created.Compare(b.created) })
			taken, over := map[keyset.Location]bool{}, map[keyset.Location]bool{}
			for _, w := range list {
				if taken[w.Location] || len(taken) < MaxKeySets {
					taken[w.Location] = true
				} else {
					over[w.Location] = true
				}
			}
			return over, len(over) > 0
		}, flow.Equal(func(a, b map[keyset.Location]bool) bool { return reflect.DeepEqual(a, b) }))
}

// fetched checks a location from which a set is to be fetched, for a kind of credentials; nil where it
// can't be. Discovered says that the issuer is asked for want of anything else.
func (r *reader) fetched(l keyset.Location, of string, discovered bool) *keyset.Location {
	field := of + ".jwks.uri"
	if l.URI == "" {
		field = of + ".issuer"
	}
	why := l.Check(r.world.Reach)
	if why == "" && r.world.TooMany(l) {
		why = fmt.Sprintf("is one more than the %d issuers and URIs of which the AuthPolicies of a namespace may have the keys fetched", MaxKeySets)
	}
	switch {
	case why == "":
		return &l
	case discovered:
		r.Problem(field, "is %q: its keys are to be asked for there, since jwks is missing, but it %s", keyset.Told(l.Issuer), why)
	default:
		r.Problem(field, "is %q, which %s", keyset.Told(cmp.Or(l.URI, l.Issuer)), why)
	}
	return nil
}

// token returns the issuer of tokens that the rule accepts, with its keys, and what was fetched of
// it; false where it accepts none.
func (r Rule) token(set Sets) (out ir.TokenIssuer, answer keyset.Answer, ok bool) {
	if r.Token == nil {
		return out, answer, false
	}
	out = *r.Token
	if r.Fetched != nil {
		answer, _ = set(*r.Fetched)
		out.JWKS = answer.Keys
	}
	return out, answer, out.JWKS != ""
}

// Fetches yields the fields of a policy whose sets are fetched, and from where, with the rule.
func (p *Policy) Fetches(yield func(field string, l keyset.Location, r *Rule)) {
	_, under, _ := layerOf(p.Object)
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

// FetchesSome reports whether sets are fetched for the policy.
func (p *Policy) FetchesSome() bool {
	return slices.ContainsFunc(p.Asks, func(r policy.Rule[Rule]) bool { return r.Value.Fetched != nil })
}

// Fetching returns whether a policy is accepted on a Gateway, with what there is to say of the
// sets that are fetched for it, and those that it waits for.
func (p *Policy) Fetching(accepted metav1.Condition, set Sets) (_ metav1.Condition, waits []string) {
	var problems, notes []string
	invalid := p.Refused != nil && accepted == *p.Refused
	if accepted.Status == metav1.ConditionTrue && len(p.Entries) > 0 {
		accepted = condition.AuthPolicyPartial(p.Entries)
	}
	p.Fetches(func(field string, l keyset.Location, r *Rule) {
		switch answer, ok := set(l); {
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
	switch {
	case accepted.Status != metav1.ConditionTrue && !invalid:
		return accepted, nil // the target doesn't exist, or somebody else has it
	case len(problems) > 0:
		return condition.AuthPolicyInvalid(slices.Concat(p.problems, p.Entries, problems)), nil
	case len(notes) > 0 && accepted.Status == metav1.ConditionTrue:
		return condition.Noted(accepted, notes...), waits
	}
	return accepted, waits
}
