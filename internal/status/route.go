package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// RouteInput is what the status of a route follows from.
type RouteInput struct {
	ControllerName string
	Node           *topology.Route
	Parents        []topology.Parent // the parentRefs that are ours to answer
	Problems       []translate.Problem
	// Rejected is what proxies refuse of that which the route needs.
	Rejected []RouteRejection
	// LeftOut is what of its backends no proxy can be given.
	LeftOut []RouteOmission
	// Barred are the backends that routes of a Gateway may not lead to.
	Barred []RouteBar
	// Closed are the Gateways where the route answers nothing but errors.
	Closed []RouteClosed
	// Notes are of what is served at all Gateways, and may not be meant.
	Notes []string
	// Shadowed are rules that get no requests.
	Shadowed []RouteShadow
	// Affected are the policies that target the route or its rules.
	Affected []topology.Affecting
}

// RouteBar is why a route may not lead to a backend at a Gateway.
type RouteBar struct {
	Gateway   object.Name
	Condition metav1.Condition // of type ResolvedRefs
}

// RouteShadow says which rule gets no requests at a Gateway.
type RouteShadow struct {
	Gateway object.Name
	Note    string
}

// RouteClosed is a Gateway whose proxies refuse all requests of a route, and why.
type RouteClosed struct {
	Gateway object.Name
	Why     metav1.Condition // of type Accepted
}

// RouteOmission is a part of a backend that a route uses at a Gateway.
type RouteOmission struct {
	Gateway object.Name
	condition.Omission
}

// RouteRejection is something of a route that the proxies of a Gateway refuse: a
// host that its rules are in, or a backend.
type RouteRejection struct {
	Gateway object.Name
	Ref     Ref
	Rejection
}

// maxParents is the API's limit. Only a route that uses default Gateways can have
// more: it is attached to those too that its status has no room for.
const maxParents = 32

// Route is the status of a route of any kind, with an entry for each parentRef that is
// ours, and for each default Gateway that it asks for. Entries of other controllers
// are not in it.
func Route(in RouteInput) gwv1.RouteStatus {
	var out gwv1.RouteStatus
	resolved := in.resolved()
	targeted := affected(condition.Reader{Namespace: in.Node.Object.GetNamespace()}, in.Affected, anyhow)
	for _, p := range in.Parents[:min(len(in.Parents), maxParents)] {
		out.Parents = append(out.Parents, gwv1.RouteParentStatus{
			ParentRef:      *p.Ref,
			ControllerName: gwv1.GatewayController(in.ControllerName),
			Conditions:     observed(in.Node.Object, append(in.parent(p, in.resolvedAt(p.Fleet, resolved)), targeted...)...),
		})
	}
	return out
}

func (in *RouteInput) parent(p topology.Parent, resolved metav1.Condition) []metav1.Condition {
	if p.Accepted().Status != metav1.ConditionTrue {
		return []metav1.Condition{p.Accepted(), resolved}
	}
	invalid, reason := in.invalidRules()
	conditions := []metav1.Condition{condition.Noted(p.Accepted(), in.notes(p.Fleet)...), resolved}
	switch {
	case len(invalid) == 0:
	case len(invalid) == topology.RuleCount(in.Node.Object):
		conditions[0] = condition.NoRuleLeft(reason, invalid)
	default:
		conditions = append(conditions, condition.RoutePartiallyInvalid(invalid))
	}
	for _, c := range in.Closed {
		if c.Gateway == p.Fleet {
			return []metav1.Condition{c.Why, resolved}
		}
	}
	refusals, omissions := in.refusals(p.Fleet), in.omissions(p.Fleet)
	if len(refusals)+len(omissions) > 0 {
		conditions = append(conditions, condition.RouteNotProgrammed(refusals, omissions))
	}
	return conditions
}

// maxShadowNotes bounds what is said of rules without requests: a copy of a long route has many.
const maxShadowNotes = 4

// notes are what there is to say of a route that a Gateway serves.
func (in *RouteInput) notes(gateway object.Name) []string {
	var shadowed []string
	for _, s := range in.Shadowed {
		if s.Gateway == gateway {
			shadowed = append(shadowed, s.Note)
		}
	}
	slices.Sort(shadowed)
	shadowed = slices.Compact(shadowed)
	if more := len(shadowed) - maxShadowNotes; more > 0 {
		shadowed = append(shadowed[:maxShadowNotes], condition.NoteMore(more))
	}
	return append(slices.Clip(in.Notes), shadowed...)
}

// resolved adds the problems with references that only the translation knows, such
// as a filter of an unknown kind, to the node's.
func (in *RouteInput) resolved() metav1.Condition {
	var problems []metav1.Condition
	for _, p := range in.Problems {
		if p.Condition.Type == string(gwv1.RouteConditionResolvedRefs) {
			problems = append(problems, p.Condition)
		}
	}
	if len(problems) == 0 {
		return in.Node.ResolvedRefs()
	}
	if in.Node.ResolvedRefs().Status == metav1.ConditionFalse {
		problems = slices.Insert(problems, 0, in.Node.ResolvedRefs())
	}
	return condition.RouteNotResolved(problems)
}

// resolvedAt adds the backends that the routes of a Gateway may not lead to.
func (in *RouteInput) resolvedAt(gateway object.Name, resolved metav1.Condition) metav1.Condition {
	var problems []metav1.Condition
	for _, b := range in.Barred {
		if b.Gateway == gateway {
			problems = append(problems, b.Condition)
		}
	}
	if len(problems) == 0 {
		return resolved
	}
	slices.SortFunc(problems, func(a, b metav1.Condition) int { return strings.Compare(a.Message, b.Message) })
	if resolved.Status == metav1.ConditionFalse {
		problems = slices.Insert(problems, 0, resolved)
	}
	return condition.RouteNotResolved(problems)
}

// invalidRules describes each invalid rule with its first problem, and gives the
// reason of the first. A rule whose references can't be resolved is still valid.
func (in *RouteInput) invalidRules() (rules []string, reason string) {
	invalid := slices.DeleteFunc(slices.Clone(in.Problems), func(p translate.Problem) bool {
		return p.Condition.Type != string(gwv1.RouteConditionAccepted)
	})
	slices.SortStableFunc(invalid, func(a, b translate.Problem) int { return cmp.Compare(a.Rule, b.Rule) })
	invalid = slices.CompactFunc(invalid, func(a, b translate.Problem) bool { return a.Rule == b.Rule })
	for _, p := range invalid {
		name := strconv.Itoa(p.Rule)
		if p.Name != "" {
			name = fmt.Sprintf("%d (%s)", p.Rule, p.Name)
		}
		rules = append(rules, name+": "+p.Condition.Message)
	}
	if len(invalid) > 0 {
		reason = invalid[0].Condition.Reason
	}
	return rules, reason
}

// NoRuleLeft reports whether the problems leave no rule of a route valid, so that
// no parent accepts it.
func NoRuleLeft(r *topology.Route, problems []translate.Problem) bool {
	in := RouteInput{Node: r, Problems: problems}
	invalid, _ := in.invalidRules()
	return len(invalid) > 0 && len(invalid) == topology.RuleCount(r.Object)
}

func (in *RouteInput) refusals(gateway object.Name) []condition.Refusal {
	var out []condition.Refusal
	for _, r := range in.Rejected {
		if r.Gateway == gateway {
			out = append(out, condition.Refusal{
				Subject:  fmt.Sprintf("%s %q", r.Ref.Kind, r.Ref.Name),
				Envoy:    r.Message,
				KeepsOld: r.KeepsOld,
			})
		}
	}
	slices.SortFunc(out, func(a, b condition.Refusal) int { return strings.Compare(a.Subject, b.Subject) })
	return out
}

func (in *RouteInput) omissions(gateway object.Name) []condition.Omission {
	var out []condition.Omission
	for _, o := range in.LeftOut {
		if o.Gateway == gateway {
			out = append(out, o.Omission)
		}
	}
	slices.SortFunc(out, func(a, b condition.Omission) int { return strings.Compare(a.Service, b.Service) })
	// Two ports of a Service can have the same endpoints.
	return slices.CompactFunc(out, func(a, b condition.Omission) bool { return a.Equal(&b) })
}
