package traffic

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// size is a number of bytes, or a quantity of them.
type size = intstr.IntOrString

// unlimited is the size that limits nothing.
const unlimited = "Unlimited"

// bytes reads a size of at least a byte and at most so many; 0 where it is broken. The text is what
// could be written in its place.
func (r *reader) bytes(field string, in *size, most uint64, instead string) uint64 {
	q, err := resource.ParseQuantity(in.String())
	n, whole := q.AsInt64()
	if err != nil || !whole || n < 1 || uint64(n) > most {
		r.Problem(field, "is %q; write %s", in.String(), instead)
		return 0
	}
	return uint64(n)
}

func (r *reader) maxBodySize(in *size, out *ir.Traffic) {
	if in.StrVal == unlimited {
		out.MaxBodySize = new(uint64)
		return
	}
	out.MaxBodySize = new(r.bytes("", in, math.MaxInt64, "a number of bytes, a quantity such as 512Ki or 10Mi, or Unlimited"))
}
