package envoy

import (
	"cmp"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// circuitBreakers keep one backend from taking the proxy's resources, with the
// backend's own bounds and its budget for retries where it has some.
func circuitBreakers(b *ir.Backend) *clusterv3.CircuitBreakers {
	own := b.Settings.CircuitBreaker
	if b.Retry == (ir.RetryBudget{}) && own == (ir.CircuitBreaker{}) {
		return breakers
	}
	budget := &clusterv3.CircuitBreakers_Thresholds_RetryBudget{MinRetryConcurrency: wrapperspb.UInt32(retryFloor)}
	if b.Retry != (ir.RetryBudget{}) {
		budget.BudgetPercent = &typev3.Percent{Value: float64(b.Retry.Percent)}
		budget.MinRetryConcurrency = wrapperspb.UInt32(b.Retry.Floor)
		if b.Retry.Interval > 0 {
			budget.BudgetInterval = duration(b.Retry.Interval)
		}
	}
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections:     wrapperspb.UInt32(cmp.Or(own.Connections, concurrency)),
		MaxPendingRequests: wrapperspb.UInt32(cmp.Or(own.Pending, concurrency)),
		MaxRequests:        wrapperspb.UInt32(cmp.Or(own.Requests, concurrency)),
		RetryBudget:        budget,
	}}}
}
