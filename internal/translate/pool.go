package translate

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// A proxy sends the datagrams of a UDP port to one set of endpoints. The weights of
// a route's backends therefore become weights of endpoints: a backend of weight w
// with n endpoints gives each of them w/n. An address that several backends have
// gets the sum.

// PoolPart is a backend of a pool.
type PoolPart struct {
	Weight    uint32
	Endpoints []ir.Endpoint // none where the backend can't be used
}

// nowhere is an endpoint that drops what it is sent: no datagram can have port 0, so
// that the proxy's own host refuses to send it. It takes the share of the backends
// that have no endpoint.
var nowhere = ir.Endpoint{Address: "127.0.0.1", Port: 0}

// Pool weighs the endpoints of several backends. The shares are exact unless that
// would take numbers beyond those that a proxy can add up, and then as good as 32
// bits allow. Without an endpoint that can be used there is none at all.
func Pool(key ir.BackendKey, parts []PoolPart) *ir.Endpoints {
	out := &ir.Endpoints{Backend: key}
	if !slices.ContainsFunc(parts, func(p PoolPart) bool { return p.Weight > 0 && len(p.Endpoints) > 0 }) {
		return out
	}
	scale := newScale(parts)
	weights := map[ir.Endpoint]uint64{}
	for _, p := range parts {
		if p.Weight == 0 {
			continue
		}
		endpoints := p.Endpoints
		if len(endpoints) == 0 {
			endpoints = []ir.Endpoint{nowhere}
		}
		for _, e := range endpoints {
			// Its backend has chosen already whether it may be used.
			weights[ir.Endpoint{Address: e.Address, Port: e.Port}] += scale.of(p.Weight, len(endpoints))
		}
	}
	var common uint64
	for _, w := range weights {
		common = gcd(common, w)
	}
	for e, w := range weights {
		e.Weight = uint32(w / common) //nolint:gosec // scale keeps the sum of all below 2^32
		out.Endpoints = append(out.Endpoints, e)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(weights)), func(w uint64) bool { return w != common }) {
		for i := range out.Endpoints {
			out.Endpoints[i].Weight = 0
		}
	}
	slices.SortFunc(out.Endpoints, func(a, b ir.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
	})
	return out
}

// scale turns a backend's weight into that of one of its endpoints.
type scale struct{ factor uint64 }

// newScale chooses the least factor by which all shares become whole numbers, or
// the greatest by which their sum stays below 2^32.
func newScale(parts []PoolPart) scale {
	var total, endpoints uint64
	factor := uint64(1)
	exact := true
	for _, p := range parts {
		if p.Weight == 0 {
			continue
		}
		n := uint64(max(1, len(p.Endpoints)))
		total += uint64(p.Weight)
		endpoints += n
		over, product := bits.Mul64(factor/gcd(factor, n), n)
		exact = exact && over == 0 && product <= math.MaxUint32
		if exact {
			factor = product
		}
	}
	if over, sum := bits.Mul64(total, factor); exact && over == 0 && sum <= math.MaxUint32 {
		return scale{factor}
	}
	// Rounding adds at most one for each endpoint.
	return scale{max(1, (math.MaxUint32-min(endpoints, math.MaxUint32/2))/total)}
}

func (s scale) of(weight uint32, endpoints int) uint64 {
	return max(1, uint64(weight)*s.factor/uint64(endpoints))
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
