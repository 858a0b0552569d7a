package envoy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// whens are the expressions of the limits of a level, early ones or others, each once.
func whens(l *ir.RateLimits, early bool) (all []string) {
	if l == nil {
		return nil
	}
	for i := range l.Counted {
		if when := l.Counted[i].When; when != "" && l.Counted[i].Key.Early == early && !slices.Contains(all, when) {
			all = append(all, when)
		}
	}
	return all
}

// whenName names an expression: wherever there is a filter of the name, it is for the same one. So
// those of levels around do no harm where other limits are in force.
func whenName(when string) string {
	sum := sha256.Sum256([]byte(when))
	return hex.EncodeToString(sum[:16])
}

// limitConditions are the filters that find out for which requests limits with these expressions
// are not; nil for none.
func limitConditions(all []string) (*anypb.Any, error) {
	if len(all) == 0 {
		return nil, nil
	}
	chain := &filterchainv3.FilterChain{}
	for _, when := range all {
		expr, err := expression.Condition(when)
		if err != nil {
			return nil, fmt.Errorf("when of a limit: %w", err)
		}
		config, err := pack(&rbacv3.RBAC{
			ShadowRules:           allow(map[string]*rbacconfigv3.Policy{"exempt": notAsked(expr)}).Rules,
			ShadowRulesStatPrefix: whenName(when) + ".",
		})
		if err != nil {
			return nil, err
		}
		chain.Filters = append(chain.Filters, &corev3.TypedExtensionConfig{Name: whenName(when), TypedConfig: config})
	}
	return pack(&filterchainv3.FilterChainConfigPerRoute{FilterChain: chain})
}

// shadowPolicy is what Envoy calls what such a filter writes down, behind the prefix of its
// statistics: the policy that matches, and nothing where none does.
const shadowPolicy = "shadow_effective_policy_id"

// limitOf describes a request by the name of a limit. If the limit is not for it there is no
// description at all: nothing is counted, and nobody is asked.
func limitOf(name, when string) (*routev3.RateLimit_Action, error) {
	if when == "" {
		return described(limitEntry, name), nil
	}
	return evaluated(expression.TextUnless(rbacMetadata, whenName(when)+"."+shadowPolicy, name))
}

// limitOfAnswer is limitOf when an answer has ended: there is no description either unless it has one
// of the statuses.
func limitOfAnswer(name, when string, statuses []int64) (*routev3.RateLimit_Action, error) {
	text := expression.Text(name)
	if when != "" {
		text = expression.TextUnless(rbacMetadata, whenName(when)+"."+shadowPolicy, name)
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
