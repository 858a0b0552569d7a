package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// dividedSite is a Gateway with routes, each with a host of its own, above a number of which its table is
// divided. Time passes when it is told to.
type dividedSite struct {
	*Pipeline
	now time.Time
}

func newDividedSite(routes, above int) *dividedSite {
	options := standalone
	options.Topology.Settings = &v1alpha1.Settings{RouteTables: &v1alpha1.RouteTables{ShardAbove: new(int32(above))}} //nolint:gosec // small
	s := &dividedSite{Pipeline: New(options), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.pass(0)
	all := []source.Object{edgeGateway(gwv1.Listener{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType})}
	for i := range routes {
		all = append(all, edgeRoute(fmt.Sprintf("r%d", i), gwv1.Hostname(fmt.Sprintf("h%d.test", i))))
	}
	s.set(all...)
	s.pass(0) // which form a table has is noted in the transaction behind
	return s
}

func (s *dividedSite) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.Updates(s.Update(func(tx *flow.Tx) {
		s.Tick(tx, s.now)
		s.Take(tx, nil)
	}))
}

// set applies objects and returns what proxies are sent for it, by name.
func (s *dividedSite) set(objects ...source.Object) map[string]*envoy.Resource {
	return s.sent(source.Batch{Set: objects})
}

func (s *dividedSite) sent(b source.Batch) map[string]*envoy.Resource {
	out := map[string]*envoy.Resource{}
	commit := s.Apply(b)
	changed := func(old, now *envoy.Resource) {
		switch {
		case now == nil:
			out[old.Name] = nil
		case !now.Equal(old):
			out[now.Name] = now
		}
	}
	for _, ch := range flow.Changes(commit, s.RouteConfigurations) {
		changed(ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(commit, s.Listeners) {
		changed(ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(commit, s.TableAccess) {
		changed(ch.Old.Resource, ch.New.Resource)
	}
	s.Updates(commit)
	return out
}

// allows is a policy that lets one range of addresses pass, another one for each n.
func allows(name, of, target string, n int) *v1alpha1.AuthPolicy {
	o := &v1alpha1.AuthPolicy{}
	o.Namespace, o.Name = "default", name
	at := gwv1.LocalPolicyTargetReferenceWithSectionName{}
	at.Group, at.Kind, at.Name = gwv1.GroupName, gwv1.Kind(of), gwv1.ObjectName(target)
	o.Spec.TargetRefs = []gwv1.LocalPolicyTargetReferenceWithSectionName{at}
	o.Spec.Authorization = map[string]v1alpha1.Authorization{"office": {Addresses: &v1alpha1.AuthAddresses{
		Allow: []string{fmt.Sprintf("10.%d.%d.0/24", n/256%256, n%256)},
	}}}
	return o
}

func keyOf(of object.Kind, name string) object.Key {
	return object.Key{Kind: of, Name: object.Name{Namespace: "default", Name: name}}
}

const besideTable = "gatehouse.access/http-80"

// An edit of a Gateway's policy costs one resource, however many shards and hosts its table has, and
// whatever routes say themselves.
func TestPolicyOfADividedTableIsOneResource(t *testing.T) {
	s := newDividedSite(20, 8)
	s.pass(drained)
	made := s.set(allows("office", "Gateway", "edge", 1))
	if len(made) != envoy.Shards+1 || made[besideTable] == nil || made[besideTable].Spare {
		t.Errorf("a new policy is sent as %d resources", len(made))
	}
	s.set(allows("own", "HTTPRoute", "r7", 77))
	for n := 2; n < 5; n++ {
		edited := s.set(allows("office", "Gateway", "edge", n))
		if len(edited) != 1 || edited[besideTable] == nil {
			t.Errorf("an edit is sent as %d resources", len(edited))
		}
	}
	gone := s.sent(source.Batch{Deleted: []object.Key{keyOf(kind.AuthPolicy, "office")}})
	if len(gone) != envoy.Shards+1 || gone[besideTable] != nil {
		t.Errorf("the end of a policy is sent as %d resources", len(gone))
	}
}

// A table that is whole has it itself, and one that is in both forms has it in both.
func TestPolicyOfATableInBothForms(t *testing.T) {
	s := newDividedSite(4, 8)
	s.pass(drained)
	if made := s.set(allows("office", "Gateway", "edge", 1)); len(made) != 1 || made["http-80"] == nil {
		t.Errorf("of a whole table it is sent as %d resources", len(made))
	}
	var more []source.Object
	for i := range 20 {
		more = append(more, edgeRoute(fmt.Sprintf("more%d", i), gwv1.Hostname(fmt.Sprintf("more%d.test", i))))
	}
	if divided := s.set(more...); divided[besideTable] == nil || divided["http-80"] == nil || len(divided) < envoy.Shards+3 {
		t.Errorf("when the table is divided, %d resources are sent", len(divided))
	}
	both := func(n int) {
		t.Helper()
		edited := s.set(allows("office", "Gateway", "edge", n))
		if len(edited) != 2 || edited[besideTable] == nil || edited["http-80"] == nil {
			t.Errorf("in both forms an edit is sent as %d resources", len(edited))
		}
	}
	both(100)
	s.pass(0)
	s.pass(drained)
	if edited := s.set(allows("office", "Gateway", "edge", 3)); len(edited) != 1 || edited[besideTable] == nil {
		t.Errorf("of a divided table an edit is sent as %d resources", len(edited))
	}
	keys := make([]object.Key, len(more))
	for i, o := range more {
		keys[i] = keyOf(kind.HTTPRoute, o.GetName())
	}
	if whole := s.sent(source.Batch{Deleted: keys}); whole[besideTable] == nil || !whole[besideTable].Spare {
		t.Error("when the table is made whole, connections that drain have nothing to be asked by")
	}
	both(200)
	s.pass(0)
	s.pass(drained)
	if edited := s.set(allows("office", "Gateway", "edge", 4)); len(edited) != 1 || edited["http-80"] == nil {
		t.Errorf("of a table that is whole again an edit is sent as %d resources", len(edited))
	}
}

// What proxies refuse of it is told to the policies that it is of, and to no others.
func TestRefusedTableAccessIsTold(t *testing.T) {
	s := newDividedSite(20, 8)
	s.set(allows("office", "Gateway", "edge", 1), allows("own", "HTTPRoute", "r7", 1))
	var marks []uint64
	for _, key := range []string{"office", "own"} {
		s.Engine.View(func(c *flow.Ctx) {
			mark, _ := flow.Get(c, s.marks[kind.AuthPolicy], keyOf(kind.AuthPolicy, key))
			marks = append(marks, mark)
		})
	}
	answer := func(state xds.State) {
		s.Updates(s.Update(func(tx *flow.Tx) { s.TakeFeedback(tx, object.Name{Namespace: "default", Name: "edge"}, state) }))
	}
	says := func(policy string) (all string) {
		s.Engine.View(func(c *flow.Ctx) {
			status, _ := flow.Get(c, s.AuthPolicyStatus, object.Name{Namespace: "default", Name: policy})
			for _, a := range status.Ancestors {
				for _, c := range a.Conditions {
					all += c.Type + "=" + string(c.Status) + " " + c.Reason + ": " + c.Message + "\n"
				}
			}
		})
		return all
	}
	slices.Sort(marks)
	both := &xds.Carried{Proxies: 1, Marks: marks}
	answer(xds.State{Connected: 1, Synced: true, Carried: both})
	for _, policy := range []string{"office", "own"} {
		if !strings.Contains(says(policy), "Programmed=True") {
			t.Errorf("%s is in force, and its status says\n%s", policy, says(policy))
		}
	}
	answer(xds.State{Connected: 1, Synced: true, Carried: both, Rejected: []xds.Rejected{{
		Ref: xds.Ref{Type: envoy.Extensions, Name: besideTable}, Message: "refused because",
	}}})
	if got := says("office"); !strings.Contains(got, "Programmed=False") || !strings.Contains(got, "refused because") {
		t.Errorf("the policy that is refused says\n%s", got)
	}
	if got := says("own"); !strings.Contains(got, "Programmed=True") {
		t.Errorf("the policy of a route says\n%s", got)
	}
	s.Engine.View(func(c *flow.Ctx) {
		access, _ := flow.Get(c, s.TableAccess, ResourceKey{object.Name{Namespace: "default", Name: "edge"}, besideTable})
		if marks := access.Resource.Carries(); marks == nil || len(*marks) != 1 {
			t.Errorf("it carries the marks %v, want that of one policy", marks)
		}
	})
}

// BenchmarkPolicyOfADividedTable is the control plane's part of an edit of a Gateway's AuthPolicy over
// 5,000 routes, with what proxies are sent.
func BenchmarkPolicyOfADividedTable(b *testing.B) {
	s := newDividedSite(5000, 512)
	s.pass(drained)
	s.set(allows("office", "Gateway", "edge", 0))
	n, resources, bytes := 0, 0, 0
	for b.Loop() {
		n++
		sent := s.set(allows("office", "Gateway", "edge", n))
		resources += len(sent)
		for _, r := range sent {
			bytes += r.Size()
		}
	}
	b.ReportMetric(float64(resources)/float64(n), "resources/op")
	b.ReportMetric(float64(bytes)/float64(n), "B-sent/op")
}
