package writer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

const ourName = "gatehouse.dev/controller"

var (
	routeStatus   = kind.All.StatusOf(kind.HTTPRoute)
	gatewayStatus = kind.All.StatusOf(kind.Gateway)
)

var (
	before = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now    = metav1.NewTime(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
)

func newMerging() *merging {
	return &merging{controller: ourName, namespace: "app", now: now, owns: func(*gwv1.ParentReference) bool { return true }}
}

func cond(kind string, status metav1.ConditionStatus, message string, at metav1.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Reason", Message: message, LastTransitionTime: at}
}

func TestConditions(t *testing.T) {
	live := []metav1.Condition{
		cond("example.com/First", "True", "theirs", before),
		cond("Programmed", "True", "old", before),
		cond("PartiallyInvalid", "True", "gone", before),
		cond("Accepted", "Unknown", "old", before),
		cond("example.com/Last", "False", "theirs", before),
	}
	desired := []metav1.Condition{
		cond("Accepted", "True", "new", metav1.Time{}),
		cond("Programmed", "True", "new", metav1.Time{}),
		cond("ResolvedRefs", "True", "new", metav1.Time{}),
	}
	want := []metav1.Condition{
		live[0],
		cond("Programmed", "True", "new", before), // no transition
		cond("Accepted", "True", "new", now),
		live[4],
		cond("ResolvedRefs", "True", "new", now),
	}
	if d := cmp.Diff(want, newMerging().conditions(live, desired)); d != "" {
		t.Error(d)
	}
}

func parent(controller, name string, conditions ...metav1.Condition) gwv1.RouteParentStatus {
	return gwv1.RouteParentStatus{
		ControllerName: gwv1.GatewayController(controller), ParentRef: gwv1.ParentReference{Name: gwv1.ObjectName(name)}, Conditions: conditions,
	}
}

// filled is a parentRef as the API server gives it back.
func filled(p gwv1.RouteParentStatus) gwv1.RouteParentStatus {
	p.ParentRef.Group, p.ParentRef.Kind = new(gwv1.Group(gwv1.GroupName)), new(gwv1.Kind("Gateway"))
	p.ParentRef.Namespace = new(gwv1.Namespace("app"))
	return p
}

func TestParents(t *testing.T) {
	accepted := cond("Accepted", "True", "", before)
	foreign := filled(parent("example.com/other", "g", cond("Accepted", "False", "theirs", before)))
	theirs := cond("example.com/Policy", "True", "theirs", before)
	many := make([]gwv1.RouteParentStatus, routeStatus.Most()-1)
	for i := range many {
		many[i] = foreign
	}
	for name, c := range map[string]struct {
		live, desired, want []gwv1.RouteParentStatus
	}{
		"first":               {nil, []gwv1.RouteParentStatus{parent(ourName, "g", accepted)}, []gwv1.RouteParentStatus{parent(ourName, "g", cond("Accepted", "True", "", now))}},
		"the same, filled in": {[]gwv1.RouteParentStatus{filled(parent(ourName, "g", accepted))}, []gwv1.RouteParentStatus{parent(ourName, "g", accepted)}, []gwv1.RouteParentStatus{filled(parent(ourName, "g", accepted))}},
		"in their places": {
			[]gwv1.RouteParentStatus{parent(ourName, "gone", accepted), foreign, parent(ourName, "g", theirs, accepted)},
			[]gwv1.RouteParentStatus{parent(ourName, "new", accepted), parent(ourName, "g", accepted)},
			[]gwv1.RouteParentStatus{foreign, parent(ourName, "g", theirs, accepted), parent(ourName, "new", cond("Accepted", "True", "", now))},
		},
		"nothing of ours stays": {[]gwv1.RouteParentStatus{parent(ourName, "g", accepted), foreign}, nil, []gwv1.RouteParentStatus{foreign}},
		"there is room for one": {many, []gwv1.RouteParentStatus{parent(ourName, "a"), parent(ourName, "b")}, append(slices.Clip(many), parent(ourName, "a"))},
	} {
		t.Run(name, func(t *testing.T) {
			live, desired := &gwv1.RouteStatus{Parents: c.live}, &gwv1.RouteStatus{Parents: c.desired}
			unchanged := []any{live.DeepCopy(), desired.DeepCopy()}
			got := newMerging().merge(routeStatus, live, desired, nil).(*gwv1.RouteStatus)
			if len(c.want) > 0 && c.want[len(c.want)-1].Conditions == nil {
				got.Parents[len(got.Parents)-1].Conditions = nil
			}
			if d := cmp.Diff(c.want, got.Parents); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if d := cmp.Diff(unchanged, []any{live, desired}); d != "" {
				t.Errorf("the input was written to:\n%s", d)
			}
		})
	}
}

// TestOwns says that processes which share a name leave each other's entries alone.
func TestOwns(t *testing.T) {
	m := newMerging()
	m.owns = func(ref *gwv1.ParentReference) bool { return ref.Name == "mine" }
	live := &gwv1.RouteStatus{Parents: []gwv1.RouteParentStatus{parent(ourName, "another's"), parent(ourName, "mine")}}
	got := m.merge(routeStatus, live, nil, nil).(*gwv1.RouteStatus)
	if d := cmp.Diff(live.Parents[:1], got.Parents); d != "" {
		t.Error(d)
	}
}

// TestLeave says what becomes of a Gateway's status when its class is not ours any
// more: it is taken back unless somebody has answered already.
func TestLeave(t *testing.T) {
	was := &gwv1.GatewayStatus{Conditions: []metav1.Condition{cond("Accepted", "True", "ours", before), cond("Programmed", "True", "ours", before)}}
	live := was.DeepCopy()
	live.Addresses = []gwv1.GatewayStatusAddress{{Value: "192.0.2.1"}}
	live.Conditions = append(live.Conditions, cond("example.com/X", "True", "theirs", before), cond("ResolvedRefs", "True", "ours", before))
	got := newMerging().merge(gatewayStatus, live, nil, was).(*gwv1.GatewayStatus)
	want := slices.Clone(gatewayStatus.Initial)
	want[0].LastTransitionTime, want[1].LastTransitionTime = now, now
	if d := cmp.Diff(&gwv1.GatewayStatus{Conditions: append(want, live.Conditions[2])}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(got, newMerging().merge(gatewayStatus, got, nil, was)); d != "" {
		t.Errorf("and a second time:\n%s", d)
	}
	live.Conditions[0].Message = "another controller's"
	if d := cmp.Diff(live, newMerging().merge(gatewayStatus, live, nil, was)); d != "" {
		t.Errorf("another's status was changed:\n%s", d)
	}
}

// TestPatch says that a patch makes the one of the other, and that it leaves alone
// what the types don't know.
func TestPatch(t *testing.T) {
	gateway := &gwv1.GatewayStatus{
		Addresses:  []gwv1.GatewayStatusAddress{{Type: new(gwv1.IPAddressType), Value: "192.0.2.1"}},
		Conditions: []metav1.Condition{cond("example.com/X", "True", "theirs", before), cond("Accepted", "True", "", before), cond("Programmed", "False", "", before)},
		Listeners:  []gwv1.ListenerStatus{{Name: "a", AttachedRoutes: 1}, {Name: "b", SupportedKinds: []gwv1.RouteGroupKind{{Kind: "HTTPRoute"}}}},
	}
	counted := gateway.DeepCopy()
	counted.Listeners[0].AttachedRoutes = 2
	other := gateway.DeepCopy()
	other.Addresses = nil
	other.Conditions = []metav1.Condition{gateway.Conditions[0], cond("Programmed", "True", "new", now), cond("ResolvedRefs", "True", "new", now)}
	other.Listeners = []gwv1.ListenerStatus{{Name: "b"}, {Name: "a", AttachedRoutes: 1}}
	routes := &gwv1.RouteStatus{Parents: []gwv1.RouteParentStatus{
		parent(ourName, "gone", cond("Accepted", "True", "", before)),
		parent("example.com/other", "g", cond("Accepted", "True", "", before)),
		parent(ourName, "g", cond("Accepted", "True", "", before)),
	}}
	fewer := &gwv1.RouteStatus{Parents: []gwv1.RouteParentStatus{routes.Parents[1], parent(ourName, "g", cond("Accepted", "False", "", now)), parent(ourName, "new", cond("Accepted", "True", "", now))}}
	for name, c := range map[string]struct {
		from, to any
		most     int // operations, that on the version included
	}{
		"nothing is there":  {&gwv1.RouteStatus{}, &gwv1.RouteStatus{Parents: routes.Parents[2:]}, 2},
		"nothing stays":     {routes, &gwv1.RouteStatus{}, 2},
		"a number":          {gateway, counted, 2},
		"much":              {gateway, other, 9},
		"entries":           {routes, fewer, 6},
		"a class":           {&gwv1.GatewayClassStatus{Conditions: gatewayStatus.Initial}, &gwv1.GatewayClassStatus{Conditions: gatewayStatus.Initial[:1], SupportedFeatures: []gwv1.SupportedFeature{{Name: "A"}}}, 3},
		"a feature":         {&gwv1.GatewayClassStatus{SupportedFeatures: []gwv1.SupportedFeature{{Name: "B"}}}, &gwv1.GatewayClassStatus{SupportedFeatures: []gwv1.SupportedFeature{{Name: "A"}, {Name: "B"}}}, 2},
		"of an XBackend":    {&gwxv1alpha1.BackendStatus{}, &gwxv1alpha1.BackendStatus{Ancestors: []gwxv1alpha1.BackendAncestorStatus{{ControllerName: ourName}}}, 2},
		"an empty to a nil": {&gwv1.PolicyStatus{Ancestors: []gwv1.PolicyAncestorStatus{}}, &gwv1.PolicyStatus{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{"metadata": map[string]any{"resourceVersion": "1"}}
			if text, _ := json.Marshal(c.from); string(text) != "{}" {
				object["status"] = marked(t, c.from)
			}
			text, err := patchOf("1", c.from, c.to)
			if err != nil {
				t.Fatal(err)
			}
			patch, err := jsonpatch.DecodePatch(text)
			if err != nil {
				t.Fatal(err)
			}
			if len(patch) > c.most {
				t.Errorf("%d operations: %s", len(patch), text)
			}
			doc, _ := json.Marshal(object)
			done, err := patch.Apply(doc)
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if required := strings.Contains(string(doc), `"parents"`); required && !strings.Contains(string(done), `"parents":[`) {
				t.Errorf("a required list is gone: %s", done)
			}
			var got struct{ Status any }
			if err := json.Unmarshal(done, &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(without(marked(t, c.to)), without(got.Status)); d != "" {
				t.Errorf("-want +got:\n%s\n%s", d, text)
			}
		})
	}
}

// marked gives a status with a field that no type has in each foreign entry.
func marked(t *testing.T, status any) any {
	t.Helper()
	out, err := tree(status)
	if err != nil {
		t.Fatal(err)
	}
	if parents, ok := out.(map[string]any)["parents"].([]any); ok {
		for _, p := range parents {
			if fields := p.(map[string]any); fields["controllerName"] != ourName {
				fields["unknown"] = "to us"
			}
		}
	}
	return out
}

// without takes out what is as good as not there.
func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, field := range v {
			if field = without(field); present(field) {
				out[name] = field
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = without(v[i])
		}
		return out
	default:
		return v
	}
}
