package translate_test

import (
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// TestAnything translates rules with arbitrary values, such as no schema lets
// pass: nothing panics, every rule has one answer, and an invalid rule has no
// other than 500.
func TestAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		route := &gwv1.HTTPRoute{}
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			route.Spec.Rules = append(route.Spec.Rules, gwv1.HTTPRouteRule{
				Matches:     rapid.Make[[]gwv1.HTTPRouteMatch]().Draw(t, "matches"),
				Filters:     filterLists().Draw(t, "filters"),
				BackendRefs: rapid.Make[[]gwv1.HTTPBackendRef]().Draw(t, "backendRefs"),
				Timeouts:    rapid.Make[*gwv1.HTTPRouteTimeouts]().Draw(t, "timeouts"),
				Retry:       rapid.Make[*gwv1.HTTPRouteRetry]().Draw(t, "retry"),
			})
		}
		n := &topology.Route{Object: route}
		if rapid.Bool().Draw(t, "resolved") {
			for i := range route.Spec.Rules {
				var rule topology.RouteRule
				for range route.Spec.Rules[i].BackendRefs {
					rule.Backends = append(rule.Backends, topology.BackendRef{Backend: ir.Backend{Port: 80, Protocol: ir.HTTP1}.Key()})
				}
				n.Rules = append(n.Rules, rule)
			}
		}
		rules := translate.Route(n)
		invalid := map[int]bool{}
		for _, p := range rules.Problems {
			invalid[p.Rule] = true
		}
		for _, r := range rules.Rules {
			answers := 0
			for _, has := range []bool{r.Redirect != nil, r.Status != 0, len(r.Backends) > 0} {
				if has {
					answers++
				}
			}
			if answers != 1 {
				t.Fatalf("%d answers in %+v", answers, r)
			}
			if invalid[r.Source.Rule] && r.Status != 500 {
				t.Fatalf("an invalid rule answers with %+v", r)
			}
		}
		translate.Host(translate.HostInput{Domain: "a", Port: 80, Entries: []translate.HostEntry{{Rules: rules.Rules}, {Hostname: "b", Rules: rules.Rules}}})
	})
}

// filterLists gives filters most of which are of a known type.
func filterLists() *rapid.Generator[[]gwv1.HTTPRouteFilter] {
	types := []gwv1.HTTPRouteFilterType{
		gwv1.HTTPRouteFilterRequestHeaderModifier, gwv1.HTTPRouteFilterResponseHeaderModifier,
		gwv1.HTTPRouteFilterRequestRedirect, gwv1.HTTPRouteFilterURLRewrite, gwv1.HTTPRouteFilterRequestMirror,
		gwv1.HTTPRouteFilterCORS, gwv1.HTTPRouteFilterExternalAuth, gwv1.HTTPRouteFilterExtensionRef, "Other",
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) gwv1.HTTPRouteFilter {
		f := rapid.Make[gwv1.HTTPRouteFilter]().Draw(t, "filter")
		f.Type = rapid.SampledFrom(types).Draw(t, "type")
		return f
	}), 0, 3)
}
