package topology

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

func (g *Graph) declareClasses() flow.Table[string, *Class] {
	return flow.Map("topology-classes", g.in.Classes,
		func(c *flow.Ctx, name string, o *gwv1.GatewayClass, emit func(string, *Class)) {
			if string(o.Spec.ControllerName) != g.options.ControllerName && !g.options.AnyController {
				return
			}
			class := &Class{Name: name, Object: o, Accepted: condition.ClassAccepted()}
			g.resolveParameters(c, class)
			if v, ok := flow.Get(c, g.version, struct{}{}); ok {
				class.SupportedVersion = v.Supported
				if !v.Usable() {
					class.Accepted, class.frozen = v.Refused, true
				}
			}
			if class.deleted() {
				class.Accepted = condition.Noted(class.Accepted, condition.NoteClassDeleted(name))
			}
			emit(name, class)
		})
}

// Equal reports whether two nodes say the same of the same object.
func (c *Class) Equal(o *Class) bool { return *c == *o }

// refuses reports whether the class refuses Gateways. Its parameters and the version of
// the cluster's definitions are no reason: Gateways that are served go on as they are.
func (c *Class) refuses() bool {
	return c.Accepted.Status != metav1.ConditionTrue && !c.InvalidParameters && !c.frozen
}

// deleted reports whether the class has been deleted, and is kept by a finalizer. It goes
// on to serve.
func (c *Class) deleted() bool { return c.Object != nil && c.Object.DeletionTimestamp != nil }

// class returns a Gateway's class if it is ours, or the one that the Gateway goes on
// with.
func (g *Graph) class(c *flow.Ctx, gw *gwv1.Gateway) (*Class, bool) {
	name := string(gw.Spec.GatewayClassName)
	if class, ok := flow.Get(c, g.Classes, name); ok {
		return class, true
	}
	if _, foreign := flow.Get(c, g.in.Classes, name); foreign {
		return nil, false
	}
	if name != g.options.ImplicitClass || name == "" {
		return g.formerClass(c, gw)
	}
	return &Class{Name: name, Accepted: condition.ClassAccepted()}, true
}

// formerClass returns the class of ours that a Gateway had, where the class that it
// names does not exist: a typing error, or a class that is made again, must not cost a
// fleet and its address. Where nothing is provisioned, there is no fleet to lose.
func (g *Graph) formerClass(c *flow.Ctx, gw *gwv1.Gateway) (*Class, bool) {
	if !g.options.Provisioned {
		return nil, false
	}
	former := g.formerClassName(c, gw)
	if former == "" {
		return nil, false
	}
	class := Class{Name: former, Accepted: condition.ClassAccepted()}
	if live, ok := flow.Get(c, g.Classes, former); ok {
		class = *live
	}
	class.missing = string(gw.Spec.GatewayClassName)
	return &class, true
}

// formerClassName is the name of the class under which this process has served a
// Gateway last, else the class of the newest fleet of the Gateway: a process that has
// just started knows nothing else. It is empty for a Gateway that had no class of ours.
func (g *Graph) formerClassName(c *flow.Ctx, gw *gwv1.Gateway) string {
	gateway := name(gw.Namespace, gw.Name)
	if last, ok := flow.Get(c, g.in.Kept, gateway); ok && last.UID == gw.UID && last.Class != "" {
		return last.Class
	}
	if g.in.FleetClasses == nil {
		return ""
	}
	former, _ := flow.Get(c, g.in.FleetClasses, gateway)
	return former
}

// declareOwned keeps the Gateways of our classes: nothing below reads others.
func (g *Graph) declareOwned() flow.Table[object.Name, *gwv1.Gateway] {
	return flow.Map("topology-owned", g.in.Gateways,
		func(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(object.Name, *gwv1.Gateway)) {
			if _, ok := g.class(c, gw); ok {
				emit(name, gw)
			}
		}, flow.Equal(flow.Same[*gwv1.Gateway]))
}

// declareOurs names the Gateways of our classes. It spares its readers, who are as
// many as there are routes, every change of the Gateways themselves.
func (g *Graph) declareOurs() flow.Table[object.Name, struct{}] {
	return flow.Map("topology-ours", g.owned,
		func(_ *flow.Ctx, name object.Name, _ *gwv1.Gateway, emit func(object.Name, struct{})) {
			emit(name, struct{}{})
		}, flow.Equal(flow.Same[struct{}]))
}
