package translate

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// mirror translates a mirror. One without a usable backend is dropped, as the
// specification wants it; the reference's problem is the topology's to tell.
func (t *translation) mirror(at position, f *gwv1.HTTPRequestMirrorFilter, ref topology.BackendRef) (ir.Mirror, bool) {
	m := ir.Mirror{Numerator: 100, Denominator: 100}
	switch {
	case f.Percent != nil:
		m.Numerator = t.share(at, "requestMirror.percent", *f.Percent, 0, 100)
	case f.Fraction != nil:
		if d := f.Fraction.Denominator; d != nil {
			m.Denominator = t.share(at, "requestMirror.fraction.denominator", *d, 1, 1<<31-1)
		}
		m.Numerator = t.share(at, "requestMirror.fraction.numerator", f.Fraction.Numerator, 0, 1<<31-1)
		m.Numerator = min(m.Numerator, m.Denominator)
	}
	if ref.Backend.IsZero() || m.Numerator == 0 {
		return ir.Mirror{}, false
	}
	m.Backend = ref.Backend
	return m, true
}

func (t *translation) share(at position, name string, v, least, most int32) uint32 {
	if v < least || v > most {
		f := at.field(name)
		t.refuse(f, condition.OutOfRange(f, int64(v), int64(least), int64(most)))
		return uint32(least)
	}
	return uint32(v)
}
