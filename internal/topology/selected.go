package topology

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// labelled is what selectors look at of an object that has labels, apart from all else that
// happens to it.
type labelled struct {
	object.Key
	created int64 // in nanoseconds
	// labels are ",app=shop,guarded=yes,": many objects have the same.
	labels unique.Handle[string]
}

func (l labelled) compare(o labelled) int {
	return cmp.Or(l.Key.Compare(o.Key), cmp.Compare(l.created, o.created), strings.Compare(l.labels.Value(), o.labels.Value()))
}

// has reports whether an object has a label.
func (l labelled) has(name, value string) bool {
	return strings.Contains(l.labels.Value(), ","+name+"="+value+",")
}

// labelShelf is some of the objects of a kind in a namespace, by one of their labels.
type labelShelf struct {
	kind      object.Kind
	namespace string
	shelf     uint8
}

func labelShelfOf(k object.Key, label string) labelShelf {
	return labelShelf{k.Kind, k.Namespace, shelf(label)}
}

// declareLabelled orders the objects that policies may select under their labels. One without
// labels takes no memory.
func (g *Graph) declareLabelled() {
	routes := flow.Keys("labels-of-routes", func(k object.Key, o RouteObject, yield func(labelled)) { yieldLabelled(k, o, yield) }, g.in.Routes)
	gateways := flow.Keys("labels-of-gateways", func(k object.Name, o *gwv1.Gateway, yield func(labelled)) {
		yieldLabelled(object.Key{Kind: kind.Gateway, Name: k}, o, yield)
	}, g.in.Gateways)
	sets := flow.Keys("labels-of-listener-sets", func(k object.Name, o *gwv1.ListenerSet, yield func(labelled)) {
		yieldLabelled(object.Key{Kind: kind.ListenerSet, Name: k}, o, yield)
	}, g.in.ListenerSets)
	g.labelled = flow.NewIndex(routes, func(l labelled, _ struct{}, yield func(labelShelf)) {
		for label := range strings.SplitSeq(strings.Trim(l.labels.Value(), ","), ",") {
			yield(labelShelfOf(l.Key, label))
		}
	}, labelled.compare)
	g.labelled.Also(gateways)
	g.labelled.Also(sets)
}

func yieldLabelled(k object.Key, o metav1.Object, yield func(labelled)) {
	labels := o.GetLabels()
	if len(labels) == 0 {
		return
	}
	var b strings.Builder
	b.WriteByte(',')
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(name + "=" + labels[name] + ",")
	}
	yield(labelled{k, o.GetCreationTimestamp().UnixNano(), unique.Make(b.String())})
}

// Selectable reports whether selectors may select objects of a kind.
func (g *Graph) Selectable(of object.Kind) bool {
	return of == kind.Gateway || of == kind.ListenerSet || g.isRoute(of)
}

// Find returns what finds the objects that selectors select. Who asks is woken when the labels of
// one change that is selected, or may be.
func (g *Graph) Find(c *flow.Ctx) policy.Finder {
	return func(s policy.Selector, yield func(object.Key, time.Time)) {
		names := s.Names()
		first := labelShelfOf(object.Key{Kind: s.Kind, Name: name(s.Namespace, "")}, names[0]+"="+s.Labels[names[0]])
		for l := range flow.Select(c, g.labelled, first).All() {
			if !slices.ContainsFunc(names, func(name string) bool { return !l.has(name, s.Labels[name]) }) {
				yield(l.Key, time.Unix(0, l.created))
			}
		}
	}
}
