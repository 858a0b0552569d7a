package translate_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

func hosts(addresses ...string) []ir.Endpoint {
	out := make([]ir.Endpoint, len(addresses))
	for i, a := range addresses {
		out[i] = ir.Endpoint{Address: a, Port: 53}
	}
	return out
}

func TestPool(t *testing.T) {
	weighed := func(address string, port uint16, weight uint32) ir.Endpoint {
		return ir.Endpoint{Address: address, Port: port, Weight: weight}
	}
	for name, c := range map[string]struct {
		parts []translate.PoolPart
		want  []ir.Endpoint
	}{
		"one backend needs no weights": {
			[]translate.PoolPart{{70, hosts("10.0.0.1", "10.0.0.2")}}, hosts("10.0.0.1", "10.0.0.2"),
		},
		"a backend's weight is shared by its endpoints": {
			[]translate.PoolPart{{1, hosts("10.0.0.1", "10.0.0.2", "10.0.0.3")}, {2, hosts("10.0.0.4", "10.0.0.5")}},
			[]ir.Endpoint{
				weighed("10.0.0.1", 53, 1), weighed("10.0.0.2", 53, 1), weighed("10.0.0.3", 53, 1),
				weighed("10.0.0.4", 53, 3), weighed("10.0.0.5", 53, 3),
			},
		},
		"an endpoint of two backends has both shares": {
			[]translate.PoolPart{{1, hosts("10.0.0.1", "10.0.0.2")}, {1, hosts("10.0.0.2")}},
			[]ir.Endpoint{weighed("10.0.0.1", 53, 1), weighed("10.0.0.2", 53, 3)},
		},
		"the share of those without endpoints is dropped": {
			[]translate.PoolPart{{7, hosts("10.0.0.1")}, {2, nil}, {1, nil}},
			[]ir.Endpoint{weighed("10.0.0.1", 53, 7), weighed("127.0.0.1", 0, 3)},
		},
		"weight zero is nothing":    {[]translate.PoolPart{{0, hosts("10.0.0.1")}, {3, hosts("10.0.0.2")}}, hosts("10.0.0.2")},
		"nobody to send to":         {[]translate.PoolPart{{1, nil}, {0, hosts("10.0.0.1")}}, nil},
		"draining ones are as good": {[]translate.PoolPart{{1, []ir.Endpoint{{Address: "10.0.0.1", Port: 53, Draining: true}}}}, hosts("10.0.0.1")},
	} {
		if d := cmp.Diff(c.want, translate.Pool(ir.Pool(53), c.parts).Endpoints); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestPoolShares protects the shares with any weights and numbers of endpoints, and
// that Envoy can add them up.
func TestPoolShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := make([]translate.PoolPart, rapid.IntRange(1, 16).Draw(t, "backends"))
		var total, sum uint64
		for i := range parts {
			parts[i].Weight = rapid.Uint32Range(1, 1_000_000).Draw(t, "weight")
			total += uint64(parts[i].Weight)
			for j := range rapid.IntRange(1, 1000).Draw(t, "endpoints") {
				parts[i].Endpoints = append(parts[i].Endpoints, ir.Endpoint{Address: "10.0.0.1", Port: uint16(i*1000 + j + 1)})
			}
		}
		got := make([]uint64, len(parts))
		for _, e := range translate.Pool(ir.Pool(53), parts).Endpoints {
			w := max(1, uint64(e.Weight))
			got[(e.Port-1)/1000] += w
			sum += w
		}
		if sum > math.MaxUint32 {
			t.Fatalf("the weights add up to %d", sum)
		}
		for i, p := range parts {
			want, is := float64(p.Weight)/float64(total), float64(got[i])/float64(sum)
			if math.Abs(want-is) > 1e-4 {
				t.Errorf("backend %d has a share of %v, want %v", i, is, want)
			}
		}
	})
}
