package limits

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/expression"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/policy/inherited"
)

// Policy is a policy, whatever it is for. Limits of it that are broken are not among
// its rules. With nothing but broken ones it says nothing, and takes the place of no other.
type Policy struct {
	policy.Node[policy.Rules[Limit]]
	Object *v1alpha1.RateLimitPolicy
}

// Equal reports whether two nodes say the same of the same object.
func (p *Policy) Equal(o *Policy) bool {
	return p.Object == o.Object && p.Node.Equal(&o.Node)
}

// Shared reports whether proxies count together by any of the limits.
func (p *Policy) Shared() bool {
	return slices.ContainsFunc(p.Asks, func(r policy.Rule[Limit]) bool { return r.Value.Global != nil })
}

// Limit is a limit of a Policy.
type Limit struct {
	Rates    []ir.Rate
	Counters []ir.Counter
	When     string          // empty for all requests
	In       []netip.Prefix  // addresses of clients; empty for all
	NotIn    []netip.Prefix  // and those that don't count
	Early    bool            // it counts before it is known who a client is
	Global   *ir.GlobalLimit // nil where each proxy counts alone
	// Unlimited counts nothing: the rule only takes the place of others.
	Unlimited bool
}

// Equal reports whether two limits say the same.
func (l Limit) Equal(o Limit) bool { return reflect.DeepEqual(l, o) }

// Effective are what RateLimitPolicies say together.
type Effective = policy.Effective[Limit]

// Kind describes RateLimitPolicies.
var Kind = policy.Kind[*Policy, policy.Rules[Limit]]{
	Kind:     kind.RateLimitPolicy,
	Node:     func(p *Policy) *policy.Node[policy.Rules[Limit]] { return &p.Node },
	Conflict: policy.Joined,
	Accepted: condition.InheritedPolicyAccepted(),
}

// Read makes the node of a policy, and checks all of it except its targets. Over are
// the limits of its namespace that are too many.
func Read(name object.Name, o *v1alpha1.RateLimitPolicy, over map[inherited.RuleKey]bool, find policy.Finder) *Policy {
	p := &Policy{Object: o}
	p.Name, p.Created = name, o.CreationTimestamp.Time
	var r reader
	p.Reach, r.Problems = inherited.Reach(kind.RateLimitPolicy, o.Namespace, o.Spec.TargetRefs, o.Spec.TargetSelectors, find)
	if p.Beyond > 0 {
		r.Problems = append(r.Problems, condition.TooManySelected(p.Selected, p.Beyond, "the others, which are the youngest, are not limited by it"))
		p.Reach = p.Within()
	}
	strategy, field, limits := layerOf(o)
	p.Strategy = strategy
	rules := []policy.Rule[Limit]{}
	for _, of := range slices.Sorted(maps.Keys(limits.Limits)) {
		r.Field = field + ".limits[" + of + "]"
		if over[inherited.RuleKey{Policy: name, Rule: of}] {
			r.Problem("", "is more than the %d rates with counters or of scope Global that the RateLimitPolicies of a namespace may have", MaxCounted)
			continue
		}
		if limit, ok := r.limit(limits.Limits[of]); ok {
			rules = append(rules, policy.Rule[Limit]{Name: of, Value: limit})
		}
	}
	if len(limits.Limits) == 0 {
		r.Field = field
		r.Problem("", "has no limits; write some, or limits: {all: {unlimited: {}}} to limit nothing")
	}
	if len(rules) > 0 {
		p.Asks = policy.NewRules(rules)
	}
	switch {
	case len(limits.Limits) == 0:
		p.Refused = new(condition.RateLimitPolicyEmpty(r.Problems))
	case len(r.Problems) > 0:
		p.Refused = new(condition.RateLimitPolicyInvalid(r.Problems))
	}
	return p
}

// layerOf returns what a policy says, as inherited.Layer does.
func layerOf(o *v1alpha1.RateLimitPolicy) (strategy policy.Strategy, field string, limits *v1alpha1.RateLimits) {
	return inherited.Layer(o.Spec.Overrides, o.Spec.Defaults, &o.Spec.RateLimits,
		func(l *v1alpha1.RateLimitLayer) (v1alpha1.Strategy, *v1alpha1.RateLimits) {
			return l.Strategy, &l.RateLimits
		})
}

// Spec returns a limit as a policy has it, by its name; nil for none.
func Spec(o *v1alpha1.RateLimitPolicy, name string) any {
	_, _, limits := layerOf(o)
	if limit, ok := limits.Limits[name]; ok {
		return limit
	}
	return nil
}

// reader reads the limits of a policy.
type reader struct{ inherited.Reader }

// The bounds of what the schema lets through.
const (
	maxRates    = 4
	maxCounters = 4
	minWindow   = time.Second
	// maxWindow is of proxies that count each by itself, whose counts a restart ends.
	maxWindow = 24 * time.Hour
	// maxSharedWindow is of limits of the scope Global: the longest month.
	maxSharedWindow = 31 * 24 * time.Hour
	// maxAddresses bounds lists that each request goes through.
	maxAddresses = 64
)

// limit reads a limit; false where nothing can be counted by it.
func (r *reader) limit(in v1alpha1.RateLimit) (out Limit, ok bool) {
	before := len(r.Problems)
	if in.Unlimited != nil {
		if !reflect.DeepEqual(in, v1alpha1.RateLimit{Unlimited: in.Unlimited}) {
			r.Problem(".unlimited", "has other fields beside it, and limits nothing; leave out one or the other")
		}
		return Limit{Unlimited: true}, len(r.Problems) == before
	}
	if len(in.Rates) == 0 || len(in.Rates) > maxRates {
		r.Problem(".rates", "has %d rates; 1 to %d are needed, or unlimited: {} in place of them", len(in.Rates), maxRates)
	}
	for i, rate := range in.Rates[:min(len(in.Rates), maxRates)] {
		field := fmt.Sprintf(".rates[%d]", i)
		window, err := time.ParseDuration(string(rate.Window))
		most := maxWindow
		if in.Scope == v1alpha1.GlobalScope || in.Cost != nil {
			most = maxSharedWindow
		}
		if err != nil || window < minWindow || window > most {
			r.Problem(field+".window", "is %q; write a time from 1s to %.0fh, such as 10s, 1m or 1h", rate.Window, most.Hours())
		}
		if rate.Limit < 1 {
			r.Problem(field+".limit", "is %d; at least 1 is needed", rate.Limit)
		}
		if slices.ContainsFunc(out.Rates, func(o ir.Rate) bool { return o.Window == window }) {
			r.Problem(field+".window", "is that of another rate; the lower of the two would be in force")
		}
		out.Rates = append(out.Rates, ir.Rate{Limit: uint32(max(rate.Limit, 0)), Window: window})
	}
	if len(in.Counters) > maxCounters {
		r.Problem(".counters", "has %d counters; at most %d can be used", len(in.Counters), maxCounters)
	}
	for i, text := range in.Counters[:min(len(in.Counters), maxCounters)] {
		c, why := counter(text)
		switch {
		case why != "":
			r.Problem(fmt.Sprintf(".counters[%d]", i), "%s", why)
		case !slices.ContainsFunc(out.Counters, func(o ir.Counter) bool { return reflect.DeepEqual(o, c) }):
			out.Counters = append(out.Counters, c)
		}
	}
	r.When(in.When)
	out.When = in.When
	if a := in.Addresses; a != nil {
		if len(a.In)+len(a.NotIn) == 0 || len(a.In) > maxAddresses || len(a.NotIn) > maxAddresses {
			r.Problem(".addresses", "has %d addresses in, and %d notIn; write 1 to %d of one of them at least", len(a.In), len(a.NotIn), maxAddresses)
		} else {
			out.In, out.NotIn = r.Addresses(".addresses.in", a.In), r.Addresses(".addresses.notIn", a.NotIn)
		}
	}
	r.global(in, &out)
	r.stage(in, &out)
	return out, len(r.Problems) == before
}

// global reads what a limit says of counting together.
func (r *reader) global(in v1alpha1.RateLimit, out *Limit) {
	scope := in.Scope
	if scope == "" && in.Cost != nil {
		scope = v1alpha1.GlobalScope
	}
	switch scope {
	case v1alpha1.GlobalScope:
	case "", v1alpha1.LocalScope:
		const need = "needs scope: Global, by which all proxies of a Gateway count together"
		if in.Cost != nil {
			r.Problem(".cost", need)
		}
		if in.OnFailure != "" {
			r.Problem(".onFailure", need)
		}
		if in.Shadow {
			r.Problem(".shadow", need)
		}
		return
	default:
		r.Problem(".scope", "is %q; write Local or Global", in.Scope)
		return
	}
	g := &ir.GlobalLimit{Rates: out.Rates, Shadow: in.Shadow, Deny: in.OnFailure == v1alpha1.DenyOnFailure}
	if in.OnFailure != "" && in.OnFailure != v1alpha1.AllowOnFailure && !g.Deny {
		r.Problem(".onFailure", "is %q; write Allow or Deny", in.OnFailure)
	}
	if in.Cost != nil {
		r.cost(in.Cost, g)
		for _, c := range out.Counters {
			if c.Of == ir.RequestHeader || c.Of == ir.RequestPath {
				r.Problem(".counters", "has request.headers or request.path, which routes may change before the answer says what it costs; with a cost count by client.address, auth.client, auth.claims.NAME, request.host or request.method")
			}
		}
	}
	out.Global = g
}

// maxStatuses is how many statuses of answers a cost may name.
const maxStatuses = 16

// cost reads what a limit says of what requests count for.
func (r *reader) cost(in *v1alpha1.RateLimitCost, g *ir.GlobalLimit) {
	switch {
	case (in.Tokens == "") == (len(in.Statuses) == 0):
		r.Problem(".cost", "has both or neither of tokens and statuses; say one of them")
	case in.Tokens == "":
		if len(in.Statuses) > maxStatuses {
			r.Problem(".cost.statuses", "has %d statuses; at most %d can be used", len(in.Statuses), maxStatuses)
		}
		for i, s := range in.Statuses[:min(len(in.Statuses), maxStatuses)] {
			if s < 200 || s > 599 {
				r.Problem(fmt.Sprintf(".cost.statuses[%d]", i), "is %d; the statuses of answers are 200 to 599", s)
			}
			g.Statuses = append(g.Statuses, int64(s))
		}
	default:
		if !tokenPath.MatchString(in.Tokens) || len(in.Tokens) > maxTokenPath {
			r.Problem(".cost.tokens", "is %q; write where answers have the number, such as usage.total_tokens: names of letters, digits, _ and -, with dots between, at most 8", in.Tokens)
		}
		g.Tokens = strings.Split(in.Tokens, ".")
	}
}

// stage reads when a limit counts. What it asks of who a client is would be the same for all before
// that is known.
func (r *reader) stage(in v1alpha1.RateLimit, out *Limit) {
	switch in.Stage {
	case v1alpha1.AfterAuthentication:
		return
	case "":
		if out.Global == nil || len(out.Global.Statuses) == 0 {
			return
		}
	case v1alpha1.BeforeAuthentication:
	default:
		r.Problem(".stage", "is %q; write BeforeAuthentication or AfterAuthentication", in.Stage)
		return
	}
	out.Early = true
	const unknown = "asks who a client is, which is not known before authentication; say stage: AfterAuthentication, or leave auth out"
	if slices.ContainsFunc(out.Counters, func(c ir.Counter) bool { return c.Of == ir.ClientName || c.Of == ir.TokenClaim }) {
		r.Problem(".counters", unknown)
	}
	if e, err := expression.Condition(in.When); in.When != "" && err == nil && expression.AsksWho(e) {
		r.Problem(".when", unknown)
	}
}

// tokenPath is a path of names to a number in an answer.
var tokenPath = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){0,7}$`)

const maxTokenPath = 200

// InForce returns how requests are counted by what policies say together; nil where they say
// nothing.
func InForce(e *Effective) *ir.RateLimits {
	if e == nil || e.Rules == nil {
		return nil
	}
	out := &ir.RateLimits{}
	for _, r := range e.Rules {
		if r.Value.Unlimited {
			continue
		}
		from := e.Policies[r.From]
		out.Counted = append(out.Counted, ir.Counted{
			Key:   ir.RateLimitKey{Policy: from.Policy, Limit: r.Name, On: from.Target.Key, Section: from.Target.Section, Early: r.Value.Early},
			Rates: len(r.Value.Rates), Counters: r.Value.Counters, When: r.Value.When, Global: r.Value.Global,
			In: r.Value.In, NotIn: r.Value.NotIn,
		})
	}
	return out
}
