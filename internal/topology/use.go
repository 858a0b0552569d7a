package topology

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// use says that an object of ours refers to another.
type use[R comparable] struct {
	kind object.Kind
	user object.Name
	ref  R
}

// declareUsed declares a table of what objects of ours refer to, so that each of it is
// read once for each of its versions, however many refer to it.
func declareUsed[R comparable](name string, uses ...flow.Table[use[R], struct{}]) flow.Table[R, struct{}] {
	return flow.Keys(name, func(k use[R], _ struct{}, yield func(R)) { yield(k.ref) }, uses...)
}
