package ratelimit

import (
	"fmt"
	"testing"
)

// BenchmarkShouldRateLimit is a check without its transport.
func BenchmarkShouldRateLimit(b *testing.B) {
	for _, limits := range []int{1, 4} {
		b.Run(fmt.Sprintf("limits=%d", limits), func(b *testing.B) {
			s := newServer(b, NewMemory())
			req := check()
			for i := range limits {
				req.Descriptors = append(req.Descriptors,
					desc(fmt.Sprintf("RateLimitPolicy/shop/per-client/%d HTTPRoute/shop/api", i), "1000000000/1h", "client.address", "192.0.2.1"))
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.ShouldRateLimit(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGRPC is a check with its transport, one in flight. The client's part is in it.
func BenchmarkGRPC(b *testing.B) {
	client := dial(b, newServer(b, NewMemory()))
	req := check(desc("a", "1000000000/1h", "client.address", "192.0.2.1"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.ShouldRateLimit(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
