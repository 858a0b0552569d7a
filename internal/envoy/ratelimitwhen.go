package envoy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filterchainv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/filter_chain/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	exprv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/rate_limit_descriptors/expr/v3"
	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-dev/gatehouse/internal/expression"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// A limit may be for some requests only. Which those are is found out once, by filters that
// refuse nothing and write down when a request is certainly not among them. Expressions in the
// descriptions of requests know no functions of texts, by which hosts are told apart, and are
// evaluated again when an answer has ended, of what the request has become by then.

// limitsWhen and earlyWhen are the places in the chain for these filters.
const (
	limitsWhen = "gatehouse.limits.when"
	earlyWhen  = "gatehouse.limits.early.when"
)

// limitWhens says which limits each of them is for.
var limitWhens = [...]struct {
	name  string
	early bool
}{{earlyWhen, true}, {limitsWhen, false}}

// limitCondition says which requests a limit is for.
type limitCondition struct {
	when      string // an expression; empty for all
	in, notIn []netip.Prefix
}

func conditionOf(c *ir.Counted) limitCondition { return limitCondition{c.When, c.In, c.NotIn} }

// all reports whether a limit is for all requests.
func (c limitCondition) all() bool { return c.when == "" && len(c.in)+len(c.notIn) == 0 }

// name names a condition: wherever there is a filter of the name, it is for the same one. So
// those of levels around do no harm where other limits are in force.
func (c limitCondition) name() string {
	text := c.when
	if len(c.in)+len(c.notIn) > 0 {
		text = fmt.Sprint(text, "\x00", c.in, c.notIn)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// exempt are policies for requests that a limit is certainly not for.
func (c limitCondition) exempt() (map[string]*rbacconfigv3.Policy, error) {
	out := map[string]*rbacconfigv3.Policy{}
	if c.when != "" {
		expr, err := expression.Condition(c.when)
		if err != nil {
			return nil, fmt.Errorf("when of a limit: %w", err)
		}
		out["exempt"] = notAsked(expr)
	}
	if len(c.in) > 0 {
		not := &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_NotId{NotId: addresses(c.in)}}
		out["exempt: addresses.in"] = meets([]*rbacconfigv3.Principal{not}, nil)
	}
	if len(c.notIn) > 0 {
		out["exempt: addresses.notIn"] = meets([]*rbacconfigv3.Principal{addresses(c.notIn)}, nil)
	}
	return out, nil
}

// whens are the conditions of the limits of a level, early ones or others, each once.
func whens(l *ir.RateLimits, early bool) (all []limitCondition) {
	if l == nil {
		return nil
	}
	for i := range l.Counted {
		c := conditionOf(&l.Counted[i])
		if c.all() || l.Counted[i].Key.Early != early {
			continue
		}
		if !slices.ContainsFunc(all, func(o limitCondition) bool { return o.name() == c.name() }) {
			all = append(all, c)
		}
	}
	return all
}

// limitConditions are the filters that find out for which requests limits with these conditions
// are not; nil for none.
func limitConditions(all []limitCondition) (*anypb.Any, error) {
	if len(all) == 0 {
		return nil, nil
	}
	chain := &filterchainv3.FilterChain{}
	for _, c := range all {
		policies, err := c.exempt()
		if err != nil {
			return nil, err
		}
		config, err := pack(&rbacv3.RBAC{ShadowRules: allow(policies).Rules, ShadowRulesStatPrefix: c.name() + "."})
		if err != nil {
			return nil, err
		}
		chain.Filters = append(chain.Filters, &corev3.TypedExtensionConfig{Name: c.name(), TypedConfig: config})
	}
	return pack(&filterchainv3.FilterChainConfigPerRoute{FilterChain: chain})
}

// shadowPolicy is what Envoy calls what such a filter writes down, behind the prefix of its
// statistics: the policy that matches, and nothing where none does.
const shadowPolicy = "shadow_effective_policy_id"

// limitOf describes a request by the name of a limit. If the limit is not for it there is no
// description at all: nothing is counted, and nobody is asked.
func limitOf(name string, c limitCondition) (*routev3.RateLimit_Action, error) {
	if c.all() {
		return described(limitEntry, name), nil
	}
	return evaluated(expression.TextUnless(rbacMetadata, c.name()+"."+shadowPolicy, name))
}

// limitOfAnswer is limitOf when an answer has ended: there is no description either unless it has one
// of the statuses.
func limitOfAnswer(name string, c limitCondition, statuses []int64) (*routev3.RateLimit_Action, error) {
	text := expression.Text(name)
	if !c.all() {
		text = expression.TextUnless(rbacMetadata, c.name()+"."+shadowPolicy, name)
	}
	return evaluated(expression.IfAnswered(statuses, text))
}

// evaluated describes a request by the name of a limit that an expression gives.
func evaluated(e *exprpb.Expr) (*routev3.RateLimit_Action, error) {
	config, err := pack(&exprv3.Descriptor{DescriptorKey: limitEntry, ExprSpecifier: &exprv3.Descriptor_Parsed{Parsed: e}})
	if err != nil {
		return nil, err
	}
	return &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_Extension{
		Extension: &corev3.TypedExtensionConfig{Name: "envoy.rate_limit_descriptors.expr", TypedConfig: config},
	}}, nil
}
