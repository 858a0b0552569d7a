package traffic

import (
	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

const (
	defaultBuffer = 1 << 20
	// maxBuffer is what a request may take of the memory of a proxy.
	maxBuffer = 64 << 20
)

func (r *reader) buffering(in *v1alpha1.Buffering, out *ir.Traffic) {
	out.Buffering = new(uint32)
	switch {
	case in.Disabled && in.MaxSize != nil:
		r.Problem(".disabled", "is true, and holds nothing back; leave out either it or maxSize")
	case in.Disabled:
	case in.MaxSize == nil:
		*out.Buffering = defaultBuffer
	default:
		*out.Buffering = uint32(r.bytes(".maxSize", in.MaxSize, maxBuffer, "a number of bytes, or a quantity such as 1Mi, up to 64Mi")) //nolint:gosec // at most that
	}
}
