package topology

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// ObjectKind is a kind of objects beside the Gateway API's, such as what a controller makes
// for each Gateway: nodes that policies may target, too.
type ObjectKind[O Object] struct {
	Group, Kind string
	// Parents are the nodes above an object, whether they exist or not; nil for a kind whose
	// objects have none.
	Parents func(O) []Node
}

// linked is an object of a declared kind.
type linked struct {
	object  Object
	parents []Node
}

// AddObjects declares a kind of objects. It is called before the first Update.
func AddObjects[O Object](g *Graph, k ObjectKind[O]) {
	g.declare(object.KindOf(k.Group, k.Kind), other{
		takes: func(o Object) bool { _, ok := o.(O); return ok },
		set: func(tx *flow.Tx, key object.Key, o Object) {
			l := &linked{object: o}
			if typed, ok := o.(O); ok && k.Parents != nil {
				l.parents = k.Parents(typed)
			}
			g.objects.Set(tx, key, l)
		},
		delete: func(tx *flow.Tx, key object.Key) { g.objects.Delete(tx, key) },
		exists: func(c *flow.Ctx, key object.Key) bool { _, ok := flow.Get(c, g.objects, key); return ok },
	})
}
