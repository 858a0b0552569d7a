package cluster

import (
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source/members"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// shadow is an object that is not used, since a source that is listed before its own
// defines it too.
type shadow struct {
	object.Key
	from int // its source
}

// shadows are the objects that are not used. All of it is the loop's.
type shadows struct {
	by      map[shadow]int // the source that is used instead
	changed map[shadow]bool
	told    map[object.Key]any // the statuses of the cluster's objects among them
}

func newShadows() shadows {
	return shadows{by: map[shadow]int{}, changed: map[shadow]bool{}, told: map[object.Key]any{}}
}

// note notes that an object is not used from now on, or is used again, or gone.
func (s *shadows) note(k object.Key, by, from int, begins bool) {
	sh := shadow{k, from}
	s.changed[sh] = true
	if begins {
		s.by[sh] = by
	} else {
		delete(s.by, sh)
	}
}

// sourceIndex says which source one is to who reads an object of the cluster. Where files
// are is not for him to know.
func sourceIndex(i int) string { return "sources[" + strconv.Itoa(i) + "]" }

// sourceNames say which source is which to who runs the controller.
func (c *Cluster) sourceNames() (names []string) {
	for i, s := range c.config.Sources {
		of := "the cluster"
		switch {
		case s.Files != nil:
			of = strings.Join(s.Files.Paths, ", ")
		case s.Ingress != nil:
			of = "Ingresses"
		case len(s.Clusters) > 0:
			of = members.Name
		case s.Remote != nil:
			of = "remote " + s.Remote.Address
		}
		names = append(names, sourceIndex(i)+" ("+of+")")
	}
	return names
}

// beginShadows has all of them told by a replica that begins to lead.
func (c *Cluster) beginShadows() {
	clear(c.shadows.told)
	for sh := range c.shadows.by {
		c.shadows.changed[sh] = true
	}
	c.reportShadows()
}

// reportShadows says at the cluster's objects that they are not used, while this
// replica leads.
func (c *Cluster) reportShadows() {
	defer clear(c.shadows.changed)
	if len(c.config.Sources) < 2 || c.term == nil || c.term.statuses == nil {
		return
	}
	again := map[object.Key]bool{} // objects whose own status counts again
	for sh := range c.shadows.changed {
		if sh.from != c.clusterSource() {
			continue
		}
		by, shadowed := c.shadows.by[sh]
		if !shadowed {
			delete(c.shadows.told, sh.Key)
			again[sh.Key] = true
			continue
		}
		if live := c.source.Live(sh.Key); live != nil {
			c.recorder.Eventf(live, nil, corev1.EventTypeWarning, "Conflicted", "Merge", "%s", condition.Shadowed(sourceIndex(by)).Message)
		}
	}
	c.pipeline.Engine.View(func(ctx *flow.Ctx) {
		if len(again) > 0 {
			for _, table := range c.pipeline.Statuses {
				table.All(ctx, func(k object.Key, status any) {
					if again[k] {
						c.write(k, status)
					}
				})
			}
		}
		for sh, by := range c.shadows.by {
			if sh.from != c.clusterSource() {
				continue
			}
			status := c.shadowStatus(ctx, sh.Key, sourceIndex(by))
			if was, told := c.shadows.told[sh.Key]; !told || !reflect.DeepEqual(was, status) {
				c.shadows.told[sh.Key] = status
				c.term.statuses.Set(sh.Key, status)
			}
		}
	})
}

// shadowStatus returns the status of an object of the cluster that is not used: where
// it would be ours to serve, it says so.
func (c *Cluster) shadowStatus(ctx *flow.Ctx, k object.Key, by string) any {
	live, s := c.source.Live(k), c.kinds.StatusOf(k.Kind)
	if live == nil || s == nil {
		return nil
	}
	shadowed := condition.Shadowed(by)
	shadowed.ObservedGeneration = live.GetGeneration()
	conditions := []metav1.Condition{shadowed}
	if !s.IsShared() {
		if c.ours(ctx, live) {
			return s.Saying(conditions)
		}
		return nil
	}
	var entries []kind.Entry
	for _, ref := range c.answers(ctx, k, live) {
		entries = append(entries, kind.Entry{Controller: gwv1.GatewayController(c.config.ControllerName), Ref: ref, Conditions: conditions})
	}
	if len(entries) == 0 {
		return nil
	}
	return s.Join(entries)
}

// ours reports whether an object that has one controller is ours.
func (c *Cluster) ours(ctx *flow.Ctx, o client.Object) bool {
	switch o := o.(type) {
	case *gwv1.GatewayClass:
		return string(o.Spec.ControllerName) == c.config.ControllerName
	case *gwv1.Gateway:
		_, ok := flow.Get(ctx, c.pipeline.Graph.Classes, string(o.Spec.GatewayClassName))
		return ok
	case *gwv1.ListenerSet:
		return c.isGateway(ctx, topology.ParentOfSet(o))
	}
	return true
}

// answers are the parents or ancestors for which an object that is not used has a status
// of ours: the parents that a route names, and for other kinds those that the object has
// which is used in its place.
func (c *Cluster) answers(ctx *flow.Ctx, k object.Key, o client.Object) []gwv1.ParentReference {
	var out []gwv1.ParentReference
	if c.kinds.Of(k.Kind).Family == kind.Route {
		for _, ref := range topology.ParentRefs(o) {
			if c.isGateway(ctx, c.gatewayOf(ctx, o.GetNamespace(), ref)) {
				out = append(out, ref)
			}
		}
		return out
	}
	for _, e := range c.kinds.StatusOf(k.Kind).Entries(c.pipeline.StatusOf(ctx, k)) {
		out = append(out, e.Ref)
	}
	return out
}

// isGateway reports whether there is a Gateway of ours with that name.
func (c *Cluster) isGateway(ctx *flow.Ctx, name object.Name) bool {
	_, ok := flow.Get(ctx, c.pipeline.Graph.Gateways, name)
	return ok
}

// gatewayOf returns the Gateway that a parent is, or is a set of.
func (c *Cluster) gatewayOf(ctx *flow.Ctx, namespace string, ref gwv1.ParentReference) object.Name {
	name := object.Name{Namespace: namespace, Name: string(ref.Name)}
	if ref.Namespace != nil {
		name.Namespace = string(*ref.Namespace)
	}
	if ref.Kind == nil || string(*ref.Kind) != kind.ListenerSet.Name() {
		return name
	}
	set, ok := flow.Get(ctx, c.pipeline.Inputs.ListenerSets, name)
	if !ok {
		return object.Name{}
	}
	return topology.ParentOfSet(set)
}
