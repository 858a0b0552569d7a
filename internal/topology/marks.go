package topology

import (
	"cmp"
	"encoding/binary"
	"encoding/json"

	"github.com/cespare/xxhash/v2"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// CarriedKey names a policy on a Gateway.
type CarriedKey struct {
	Gateway object.Name
	Policy  object.Key
}

// Compare orders keys.
func (k CarriedKey) Compare(o CarriedKey) int {
	return cmp.Or(k.Gateway.Compare(o.Gateway), k.Policy.Compare(o.Policy))
}

// Marks declares the marks of the policies of a kind; text is what else tells one
// version from another, beside its JSON.
func Marks[P any, S policy.Asks[S]](
	name string, of policy.Kind[P, S], nodes flow.Table[object.Name, P], text func(*flow.Ctx, P, func(string)),
) flow.Table[object.Key, uint64] {
	return flow.Map(name+"-marks", nodes, func(c *flow.Ctx, k object.Name, p P, emit func(object.Key, uint64)) {
		n := of.Node(p)
		d := xxhash.New()
		write := func(s string) {
			_, _ = d.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
			_, _ = d.WriteString(s)
		}
		key := object.Key{Kind: of.Kind, Name: k}
		write(key.String())
		write(n.Strategy.String())
		for _, t := range n.Targets {
			write(t.String())
		}
		said, _ := json.Marshal(n.Asks) //nolint:errchkjson // of our own types
		write(string(said))
		text(c, p, write)
		emit(key, d.Sum64())
	}, flow.Equal(flow.Same[uint64]))
}

// CarriedBy yields which policies have to do with what is on a Gateway.
func CarriedBy[R policy.Asks[R]](name string, of object.Kind, in *Inherited[R]) flow.Table[CarriedKey, struct{}] {
	yieldAll := func(gateway object.Name, e *policy.Effective[R], yield func(CarriedKey)) {
		for _, o := range e.Outcomes() {
			yield(CarriedKey{gateway, object.Key{Kind: of, Name: o.Policy}})
		}
	}
	onListeners := flow.Keys(name+"-carried-by-listeners",
		func(k ListenerKey, i *Inheritance[R], yield func(CarriedKey)) {
			yieldAll(k.Fleet(), i.Effective, yield)
		}, in.Listeners, in.SetListeners)
	onRoutes := flow.Keys(name+"-carried-by-routes",
		func(k AttachmentKey, r *RouteInheritance[R], yield func(CarriedKey)) {
			r.Each(func(e *policy.Effective[R]) { yieldAll(k.Listener.Fleet(), e, yield) })
		}, in.Routes)
	all := []flow.Table[CarriedKey, struct{}]{onListeners, onRoutes}
	if in.Services != nil {
		all = append(all, flow.Keys(name+"-carried-by-services",
			func(k ServicePlace, e *policy.Effective[R], yield func(CarriedKey)) {
				yieldAll(k.Listener.Fleet(), e, yield)
			}, in.Services))
	}
	return flow.Keys(name+"-carried", func(k CarriedKey, _ struct{}, yield func(CarriedKey)) { yield(k) }, all...)
}
