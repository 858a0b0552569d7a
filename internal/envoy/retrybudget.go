package envoy

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// circuitBreakers keep one backend from taking the proxy's resources, with the
// backend's own budget for retries where it has one.
func circuitBreakers(budget ir.RetryBudget) *clusterv3.CircuitBreakers {
	if budget == (ir.RetryBudget{}) {
		return breakers
	}
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections:     wrapperspb.UInt32(concurrency),
		MaxPendingRequests: wrapperspb.UInt32(concurrency),
		MaxRequests:        wrapperspb.UInt32(concurrency),
		RetryBudget: &clusterv3.CircuitBreakers_Thresholds_RetryBudget{
			BudgetPercent:       &typev3.Percent{Value: float64(budget.Percent)},
			BudgetInterval:      duration(budget.Interval),
			MinRetryConcurrency: wrapperspb.UInt32(budget.Floor),
		},
	}}}
}
