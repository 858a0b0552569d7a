package traffic

import (
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// algorithm is what there is to know of an algorithm.
type algorithm struct {
	of           ir.CompressionType
	least, most  int32 // levels
	defaultLevel int32
}

// algorithms are those that there are. The levels by default are Envoy's, for gzip zlib's.
var algorithms = map[v1alpha1.CompressionType]algorithm{
	v1alpha1.Gzip:   {ir.Gzip, 1, 9, 6},
	v1alpha1.Brotli: {ir.Brotli, 0, 11, 3},
	v1alpha1.Zstd:   {ir.Zstd, 1, 19, 3},
}

// defaultAlgorithms are those of a policy that names none, the preferred one first.
var defaultAlgorithms = []v1alpha1.CompressionAlgorithm{{Type: v1alpha1.Brotli}, {Type: v1alpha1.Zstd}, {Type: v1alpha1.Gzip}}

// defaultTypes are the content types of a policy that names none: text, but no streams of events.
var defaultTypes = []string{
	"text/html", "text/css", "text/plain", "text/xml", "text/javascript",
	"application/javascript", "application/json", "application/xml", "application/xhtml+xml", "image/svg+xml",
}

// defaultMinSize is below what compressing an answer makes no difference: it fits a packet anyway.
const defaultMinSize = 256

const maxTypes = 64

// contentType is a type without parameters, or all of a main type.
var contentType = regexp.MustCompile(`^[a-z0-9][a-z0-9!#$&^_.+-]*/([a-z0-9][a-z0-9!#$&^_.+-]*|\*)$`)

func (r *reader) compression(in *v1alpha1.Compression, out *ir.Traffic) {
	c := &ir.Compression{}
	out.Compression = c
	if in.Disabled {
		if len(in.Algorithms) > 0 || len(in.ContentTypes) > 0 || in.MinSize != nil {
			r.Problem(".disabled", "is true, and compresses nothing; leave out either it or what stands beside it")
		}
		return
	}
	listed := in.Algorithms
	if len(listed) == 0 {
		listed = defaultAlgorithms
	}
	for i, a := range listed {
		field := fmt.Sprintf(".algorithms[%d]", i)
		known, ok := algorithms[a.Type]
		if !ok {
			r.Problem(field+".type", "is %q; write Gzip, Brotli or Zstd", a.Type)
			continue
		}
		level := known.defaultLevel
		if a.Level != nil {
			level = *a.Level
		}
		if level < known.least || level > known.most {
			r.Problem(field+".level", "is %d; the levels of %s are %d to %d", level, a.Type, known.least, known.most)
			continue
		}
		if slices.ContainsFunc(c.Algorithms, func(o ir.CompressionAlgorithm) bool { return o.Type == known.of }) {
			r.Problem(field+".type", "is %s, which another one is already; leave out one of the two", a.Type)
			continue
		}
		c.Algorithms = append(c.Algorithms, ir.CompressionAlgorithm{Type: known.of, Level: uint32(level)}) //nolint:gosec // at least 0
	}
	if c.ContentTypes = in.ContentTypes; len(c.ContentTypes) == 0 {
		c.ContentTypes = defaultTypes
	}
	if len(c.ContentTypes) > maxTypes {
		r.Problem(".contentTypes", "has %d types; at most %d can be used", len(c.ContentTypes), maxTypes)
		return
	}
	for i, text := range c.ContentTypes {
		if !contentType.MatchString(text) {
			r.Problem(fmt.Sprintf(".contentTypes[%d]", i), "is %q; write a type in lower case and without parameters, such as application/json or text/*", text)
		}
	}
	c.MinSize = defaultMinSize
	if in.MinSize != nil {
		c.MinSize = uint32(r.bytes(".minSize", in.MinSize, math.MaxUint32, "a number of bytes, or a quantity such as 1Ki")) //nolint:gosec // at most that
	}
}
