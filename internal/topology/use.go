package topology

import (
	"cmp"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// use says that an object of ours refers to another, and may. In a table the Gateway
// stands beside it that the object belongs to; none for a policy, which may concern many.
type use[R comparable] struct {
	kind object.Kind
	user object.Name
	ref  R
}

// declareUsed declares a table of what objects of ours refer to, so that each of it is
// read once for each of its versions, however many refer to it.
func declareUsed[R comparable](name string, uses ...flow.Table[use[R], object.Name]) flow.Table[R, struct{}] {
	return flow.Keys(name, func(k use[R], _ object.Name, yield func(R)) { yield(k.ref) }, uses...)
}

// usesOf orders what objects refer to under their Gateways.
type usesOf[R comparable] = *flow.Index[object.Name, use[R], object.Name]

func declareUsesOf[R comparable](compare func(a, b R) int, uses ...flow.Table[use[R], object.Name]) usesOf[R] {
	under := func(_ use[R], gateway object.Name, yield func(object.Name)) {
		if !gateway.IsZero() {
			yield(gateway)
		}
	}
	index := flow.NewIndex(uses[0], under, func(a, b use[R]) int {
		return cmp.Or(a.kind.Compare(b.kind), a.user.Compare(b.user), compare(a.ref, b.ref))
	})
	for _, t := range uses[1:] {
		index.Also(t)
	}
	return index
}
