package auth

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/policy/inherited"
)

// Policy is a policy, whatever it is for. One that can't be used has all its rules
// nevertheless: by those that are broken nobody passes.
type Policy struct {
	policy.Node[policy.Rules[Rule]]
	Object *v1alpha1.AuthPolicy
	// PolicyTargets are what its external rules refer to, as those of a Route.
	PolicyTargets []object.Key
	// Entries are those of its Secrets by which nobody passes, where it is not refused for them.
	Entries  []string
	problems []string // for which it is refused
}

// Equal reports whether two nodes say the same of the same object.
func (p *Policy) Equal(o *Policy) bool {
	return p.Object == o.Object && p.Node.Equal(&o.Node) && slices.Equal(p.problems, o.problems) && slices.Equal(p.Entries, o.Entries) &&
		slices.Equal(p.PolicyTargets, o.PolicyTargets)
}

// Rule is a rule of an AuthPolicy: credentials that suffice, or a condition. With
// neither it is for credentials, and nobody has those.
type Rule struct {
	Token *ir.TokenIssuer
	// Fetched is where the keys of Token are fetched from, which has none then; nil where it
	// has some. See Access.
	Fetched *keyset.Location
	// Login has people log in, by what Fetched brings, and Token is what they get there.
	Login *Login
	// LogsIn says that people have sessions by the rule, whether or not it is broken now.
	LogsIn bool
	// CookieDomain is that of which all hosts share these; empty for one on each host.
	CookieDomain string
	Keys         *ir.APIKeys
	Passwords    *ir.Passwords
	// Certificates are those that listeners verify.
	Certificates *ir.ClientCertificates
	Anonymous    bool
	Condition    *ir.AccessCondition
	// Unauthenticated and Forbidden are no rules but what those are told who don't pass.
	Unauthenticated, Forbidden *ir.AccessAnswer
	// Headers are those that only the proxy may set, in lower case.
	Headers []string
}

// Equal reports whether two rules say the same.
func (r Rule) Equal(o Rule) bool { return reflect.DeepEqual(r, o) }

// Secrets yields what the rule's credentials are told by, which no JSON has.
func (r Rule) Secrets(yield func(string)) {
	if r.Keys != nil {
		for _, k := range r.Keys.Keys {
			yield(k.Sum.Reveal())
		}
	}
	if r.Passwords != nil {
		for _, u := range r.Passwords.Users {
			yield(u.Sum.Reveal())
		}
	}
	if r.Login != nil {
		yield(r.Login.Secret.Reveal())
	}
}

// Effective is what AuthPolicies say together.
type Effective = policy.Effective[Rule]

// Kind describes AuthPolicies.
var Kind = policy.Kind[*Policy, policy.Rules[Rule]]{
	Kind:     kind.AuthPolicy,
	Node:     func(p *Policy) *policy.Node[policy.Rules[Rule]] { return &p.Node },
	Conflict: policy.Joined,
	Accepted: condition.InheritedPolicyAccepted(),
}

// Read makes the node of a policy, and checks all of it except its targets.
func Read(name object.Name, o *v1alpha1.AuthPolicy, find policy.Finder, world *World) *Policy {
	p := &Policy{Object: o}
	p.Name, p.Created = name, o.CreationTimestamp.Time
	var problems []string
	p.Reach, problems = inherited.Reach(kind.AuthPolicy, o.Namespace, o.Spec.TargetRefs, o.Spec.TargetSelectors, find)
	if p.Beyond > 0 {
		problems = append(problems, condition.TooManySelected(p.Selected, p.Beyond, "nobody passes to the others, which are the youngest"))
	}
	strategy, field, rules := layerOf(o)
	p.Strategy = strategy
	r := reader{Reader: inherited.Reader{Field: field, Problems: problems}, world: world, namespace: name.Namespace, policy: name.Name, created: p.Created}
	p.Asks = policy.NewRules(r.rules(rules))
	if len(rules.Authentication)+len(rules.Authorization) == 0 {
		r.Field = field
		r.Problem("", "has no rules; write authentication or authorization: to let everybody pass, authentication: {all: {anonymous: {}}}")
		p.Strategy, p.Asks = policy.Blocks, closed(nil)
	}
	if p.Beyond > 0 {
		p.AsksBeyond = closed(p.Asks)
	}
	slices.SortFunc(r.policyTargets, object.Key.Compare)
	p.PolicyTargets = slices.Compact(r.policyTargets)
	switch {
	case p.Strategy == policy.Blocks:
		p.Refused, p.problems = new(condition.AuthPolicyEmpty(r.Problems)), r.Problems
	case len(r.Problems) > 0:
		p.problems = slices.Concat(r.Problems, r.entries)
		p.Refused = new(condition.AuthPolicyInvalid(p.problems))
	default:
		p.Entries = r.entries
	}
	return p
}

// closed are rules by which nobody passes, with those of a policy.
func closed(rules policy.Rules[Rule]) policy.Rules[Rule] {
	never := policy.Rule[Rule]{Name: authorization, Value: Rule{Condition: &ir.AccessCondition{Never: true}}}
	if slices.ContainsFunc(rules, func(r policy.Rule[Rule]) bool { return r.Name == never.Name }) {
		return rules
	}
	return policy.NewRules(append(slices.Clip(rules), never))
}

// layerOf returns what a policy says, as inherited.Layer does.
func layerOf(o *v1alpha1.AuthPolicy) (strategy policy.Strategy, field string, rules *v1alpha1.AuthRules) {
	return inherited.Layer(o.Spec.Overrides, o.Spec.Defaults, &o.Spec.AuthRules,
		func(l *v1alpha1.AuthLayer) (v1alpha1.Strategy, *v1alpha1.AuthRules) { return l.Strategy, &l.AuthRules })
}

// RuleSpec returns a rule as a policy has it, by its name in Rules, without the text of a key
// set, which is long; nil for none.
func RuleSpec(o *v1alpha1.AuthPolicy, name string) any {
	_, _, rules := layerOf(o)
	if answer, ok := strings.CutPrefix(name, responses); ok {
		return answerSpec(rules.Responses, answer)
	}
	if condition, ok := strings.CutPrefix(name, authorization); ok {
		return rules.Authorization[condition]
	}
	rule, ok := rules.Authentication[strings.TrimPrefix(name, authentication)]
	if !ok {
		return nil
	}
	if rule.JWT != nil && rule.JWT.JWKS != nil && rule.JWT.JWKS.Inline != nil {
		jwt := *rule.JWT
		jwt.JWKS, rule.JWT = &v1alpha1.JWKS{Inline: new("(as the policy has it)")}, &jwt
	}
	return rule
}

// Access returns who may pass by what policies say together; nil where they say nothing. set
// returns what a location has; nothing where it is not known, and nobody passes by its tokens
// then. Of several rules by which people log in the first is in force.
func Access(e *Effective, set Sets) *ir.Access {
	if e == nil || e.Rules == nil {
		return nil
	}
	a, anonymous := &ir.Access{}, false
	hidden := map[string]bool{}
	for _, r := range e.Rules {
		for _, header := range r.Value.Headers {
			hidden[header] = true
		}
		if r.Value.answers() {
			a.Unauthenticated = cmp.Or(a.Unauthenticated, r.Value.Unauthenticated)
			a.Forbidden = cmp.Or(a.Forbidden, r.Value.Forbidden)
			continue
		}
		if r.Value.Condition != nil {
			a.Conditions = append(a.Conditions, *r.Value.Condition)
			continue
		}
		a.Authenticated = true
		anonymous = anonymous || r.Value.Anonymous
		if token, answer, ok := r.Value.token(set); ok && r.Value.Login == nil {
			a.Tokens = append(a.Tokens, token)
		} else if ok && a.Login == nil {
			a.Login = r.Value.Login.with(token, answer.Endpoints)
		}
		if r.Value.Keys != nil {
			a.Keys = append(a.Keys, *r.Value.Keys)
		}
		if r.Value.Passwords != nil {
			a.Passwords = append(a.Passwords, *r.Value.Passwords)
		}
		if r.Value.Certificates != nil {
			a.Certificates = append(a.Certificates, *r.Value.Certificates)
		}
	}
	if a.Authenticated = a.Authenticated && !anonymous; anonymous {
		a.Login = nil // nobody has to
	}
	a.Hidden = slices.Sorted(maps.Keys(hidden))
	return a
}

// The prefixes of the names of rules, by which policies are merged.
const (
	authentication = "authentication/"
	authorization  = "authorization/"
	responses      = "responses/"
)
