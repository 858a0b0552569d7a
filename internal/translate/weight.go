package translate

import (
	"math"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// backends translates a rule's backendRefs; nil where no request can reach any:
// there are none, all have weight zero, or none can be used. A reference that
// can't be used keeps its share, which answers 500.
func (t *translation) backends(at position, list []gwv1.HTTPBackendRef, refs []topology.BackendRef, session *ir.Session) []ir.WeightedBackend {
	if len(list) == 0 {
		return nil
	}
	out := make([]ir.WeightedBackend, 0, len(list))
	usable := false
	for i := range list {
		at := at.inBackend(i)
		b := ir.WeightedBackend{Weight: t.weight(at, list[i].Weight)}
		b.Filters, _ = t.filters(at, list[i].Filters, nil)
		if i < len(refs) && !refs[i].Backend.IsZero() {
			b.Backend = refs[i].Backend
			b.Session = sessionOn(session, b.Backend, out)
			if session != nil && !b.Backend.Picker().IsZero() {
				f := inRule(t.index).field("sessionPersistence")
				t.refuse(f, condition.PoolSession(f))
			}
		}
		if b.Weight == 0 {
			continue
		}
		usable = usable || !b.Backend.IsZero()
		out = append(out, b)
	}
	if !usable {
		return nil
	}
	return out
}

func (t *translation) weight(at position, w *int32) uint32 {
	switch {
	case w == nil:
		return 1
	case *w < 0:
		f := at.field("weight")
		t.refuse(f, condition.OutOfRange(f, int64(*w), 0, math.MaxInt32))
		return 0
	default:
		return uint32(*w)
	}
}
