package traffic

import (
	"math"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// minBandwidth is the unit in which proxies know it.
const minBandwidth = 1 << 10

// bandwidth reads bytes a second.
func (r *reader) bandwidth(in *size) *uint64 {
	const instead = "bytes a second, of at least 1Ki, a quantity such as 512Ki or 10Mi, or Unlimited"
	if in.StrVal == unlimited {
		return new(uint64)
	}
	n := r.bytes("", in, math.MaxInt64, instead)
	if n > 0 && n < minBandwidth {
		r.Problem("", "is %q; write %s", in.String(), instead)
	}
	return &n
}

func (r *reader) requestBandwidth(in *size, out *ir.Traffic) { out.RequestBandwidth = r.bandwidth(in) }

func (r *reader) responseBandwidth(in *size, out *ir.Traffic) {
	out.ResponseBandwidth = r.bandwidth(in)
}
