package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// TestRouteConditions says what a parent of a route with two rules is told.
func TestRouteConditions(t *testing.T) {
	accepted := short([]metav1.Condition{condition.RouteAccepted()})
	resolved := short([]metav1.Condition{condition.RouteResolvedRefs()})
	value := func(rule int, field string) translate.Problem {
		return translate.Problem{Rule: rule, Field: field, Condition: condition.RouteUnsupportedValue(field, "bad")}
	}
	named := value(1, "b")
	named.Name = "second"
	filters := translate.Problem{Rule: 0, Field: "f", Condition: condition.RouteIncompatibleFilters("f", "bad")}
	extension := translate.Problem{Rule: 0, Field: "e", Condition: condition.UnknownFilterKind("e", "g", "K", "n")}
	missing := condition.RouteNotResolved([]metav1.Condition{condition.BackendNotFound("r", condition.Missing{Kind: "Service", Namespace: "ns", Name: "svc"})})

	for name, c := range map[string]struct {
		accepted metav1.Condition
		resolved metav1.Condition
		problems []translate.Problem
		rejected []status.RouteRejection
		want     string
	}{
		"fine": {want: accepted + resolved},
		"some rules are invalid": {
			problems: []translate.Problem{named, value(1, "c")},
			want:     accepted + resolved + short([]metav1.Condition{condition.RoutePartiallyInvalid([]string{"1 (second): b: bad"})}),
		},
		"all rules are invalid, in any order": {
			problems: []translate.Problem{named, filters, value(1, "c")},
			want:     "Accepted=False/IncompatibleFilters: No rule is valid: 0: f: bad; 1 (second): b: bad\n" + resolved,
		},
		"a filter can't be found": {
			problems: []translate.Problem{extension},
			want:     accepted + "ResolvedRefs=False/InvalidKind: " + extension.Condition.Message + "\n",
		},
		"a backend and a filter can't be found": {
			resolved: missing,
			problems: []translate.Problem{extension},
			want:     accepted + "ResolvedRefs=False/BackendNotFound: " + missing.Message + "; " + extension.Condition.Message + "\n",
		},
		"not attached": {
			accepted: condition.RouteNoGateway(condition.Missing{Kind: "Gateway", Namespace: "infra", Name: "gw"}),
			problems: []translate.Problem{named},
			rejected: []status.RouteRejection{{Gateway: gatewayName, Ref: status.Ref{Kind: status.RefHost, Name: "a"}}},
			want:     short([]metav1.Condition{condition.RouteNoGateway(condition.Missing{Kind: "Gateway", Namespace: "infra", Name: "gw"})}) + resolved,
		},
		"a host is refused here and one elsewhere": {
			rejected: []status.RouteRejection{
				{Gateway: gatewayName, Ref: status.Ref{Kind: status.RefHost, Name: "b.example.com"}, Message: "odd"},
				{Gateway: gatewayName, Ref: status.Ref{Kind: status.RefHost, Name: "a.example.com"}, Message: "bad", KeepsOld: true},
				{Gateway: object.Name{Name: "other"}, Ref: status.Ref{Kind: status.RefHost, Name: "c.example.com"}},
			},
			want: accepted + resolved + `Programmed=False/RejectedByProxy: Envoy refuses host "a.example.com", and the last version that it accepted stays in force: bad; ` +
				`Envoy refuses host "b.example.com", and it is not in force until that is mended: odd` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.accepted.Type == "" {
				c.accepted = condition.RouteAccepted()
			}
			if c.resolved.Type == "" {
				c.resolved = condition.RouteResolvedRefs()
			}
			object := &gwv1.HTTPRoute{Generation: 3}
			object.Spec.ParentRefs = []gwv1.ParentReference{{Name: "foreign"}, {Name: "gw"}}
			object.Spec.Rules = make([]gwv1.HTTPRouteRule, 2)
			problems := append([]translate.Problem(nil), c.problems...)
			got := status.Route(status.RouteInput{
				ControllerName: "gatehouse.dev/controller",
				Node:           &topology.Route{Object: object, Unresolved: &c.resolved},
				Parents:        []topology.Parent{{Ref: &object.Spec.ParentRefs[1], Gateway: gatewayName, Fleet: gatewayName, Answer: &c.accepted}},
				Problems:       c.problems,
				Rejected:       c.rejected,
			})
			if len(got.Parents) != 1 || got.Parents[0].ParentRef.Name != "gw" || got.Parents[0].ControllerName != "gatehouse.dev/controller" {
				t.Fatalf("parents are %+v", got.Parents)
			}
			if diff := cmp.Diff(c.want, short(got.Parents[0].Conditions)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, o := range got.Parents[0].Conditions {
				if o.ObservedGeneration != 3 {
					t.Errorf("%s has generation %d", o.Type, o.ObservedGeneration)
				}
			}
			if diff := cmp.Diff(problems, c.problems); diff != "" {
				t.Errorf("the input was written to:\n%s", diff)
			}
		})
	}
}

// TestRouteParentsAreBounded protects the API's limit, which default Gateways could
// exceed.
func TestRouteParentsAreBounded(t *testing.T) {
	const most = 32
	in := status.RouteInput{Node: &topology.Route{Object: &gwv1.HTTPRoute{}}}
	for range most + 1 {
		in.Parents = append(in.Parents, topology.Parent{Ref: &gwv1.ParentReference{}})
	}
	if got := len(status.Route(in).Parents); got != most {
		t.Errorf("%d parents, want %d", got, most)
	}
}
