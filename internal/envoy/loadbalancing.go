package envoy

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	commonlbv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	maglevv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/maglev/v3"
	ringhashv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/ring_hash/v3"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// balancers is what Envoy calls the ways to choose an endpoint. By a ring a hash takes a thousandth of
// the memory that it takes by Maglev, whose table is as large for one endpoint as for thousands.
var balancers = map[ir.Balancer]clusterv3.Cluster_LbPolicy{
	ir.LeastRequest:   clusterv3.Cluster_LEAST_REQUEST,
	ir.RoundRobin:     clusterv3.Cluster_ROUND_ROBIN,
	ir.Random:         clusterv3.Cluster_RANDOM,
	ir.ConsistentHash: clusterv3.Cluster_RING_HASH,
	ir.Maglev:         clusterv3.Cluster_MAGLEV,
}

// setBalancer says how endpoints are chosen.
func setBalancer(c *clusterv3.Cluster, b *ir.Backend) (err error) {
	s := &b.Settings
	if !b.Picker.IsZero() {
		c.LoadBalancingPolicy, err = picking(s)
		return err
	}
	if s.ClientIP || s.Hash != (ir.Hash{}) {
		c.LoadBalancingPolicy, err = hashing(s)
		return err
	}
	c.LbPolicy = balancers[s.Balancer]
	if !s.Clusters.IsZero() {
		c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{
			LocalityConfigSpecifier: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
				LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
			},
		}
	}
	switch {
	case s.RingSize > 0:
		c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{
			RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(uint64(s.RingSize))},
		}
	case s.SlowStart == 0:
	case s.Balancer == ir.RoundRobin:
		c.LbConfig = &clusterv3.Cluster_RoundRobinLbConfig_{RoundRobinLbConfig: &clusterv3.Cluster_RoundRobinLbConfig{SlowStartConfig: slowStart(s)}}
	default:
		c.LbConfig = &clusterv3.Cluster_LeastRequestLbConfig_{LeastRequestLbConfig: &clusterv3.Cluster_LeastRequestLbConfig{SlowStartConfig: slowStart(s)}}
	}
	return nil
}

// hashing chooses endpoints by a hash of what the backend itself says, and not of what routes do.
func hashing(s *ir.BackendSettings) (*clusterv3.LoadBalancingPolicy, error) {
	of := s.Hash
	if s.ClientIP {
		of = ir.Hash{SourceIP: true}
	}
	common := &commonlbv3.ConsistentHashingLbConfig{HashPolicy: hashPolicy(&ir.LoadBalancing{Hash: &of})}
	var weighted *commonlbv3.LocalityLbConfig_LocalityWeightedLbConfig
	if !s.Clusters.IsZero() {
		weighted = &commonlbv3.LocalityLbConfig_LocalityWeightedLbConfig{}
	}
	var m message = &maglevv3.Maglev{ConsistentHashingLbConfig: common, LocalityWeightedLbConfig: weighted}
	if s.Balancer != ir.Maglev {
		ring := &ringhashv3.RingHash{ConsistentHashingLbConfig: common, LocalityWeightedLbConfig: weighted}
		if s.RingSize > 0 {
			ring.MinimumRingSize = wrapperspb.UInt64(uint64(s.RingSize))
		}
		m = ring
	}
	return balancing("hashing", m)
}

func slowStart(s *ir.BackendSettings) *clusterv3.Cluster_SlowStartConfig {
	return &clusterv3.Cluster_SlowStartConfig{SlowStartWindow: duration(s.SlowStart)}
}

// hashPolicy is what of a request is hashed. It is the route's, so that an edit of it changes no cluster,
// whose connections would end.
func hashPolicy(l *ir.LoadBalancing) []*routev3.RouteAction_HashPolicy {
	if l == nil || l.Hash == nil {
		return nil
	}
	p := &routev3.RouteAction_HashPolicy{}
	switch h := l.Hash; {
	case h.Header != "":
		p.PolicySpecifier = &routev3.RouteAction_HashPolicy_Header_{Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: h.Header}}
	case h.Cookie != "":
		cookie := &routev3.RouteAction_HashPolicy_Cookie{
			Name: h.Cookie, Path: h.Path, Ttl: durationpb.New(h.CookieTTL),
			Attributes: []*routev3.RouteAction_HashPolicy_CookieAttribute{{Name: "SameSite", Value: h.SameSite}},
		}
		if h.Domain != "" {
			cookie.Attributes = append(cookie.Attributes, &routev3.RouteAction_HashPolicy_CookieAttribute{Name: "Domain", Value: h.Domain})
		}
		if h.Secure {
			cookie.Attributes = append(cookie.Attributes, &routev3.RouteAction_HashPolicy_CookieAttribute{Name: "Secure"})
		}
		p.PolicySpecifier = &routev3.RouteAction_HashPolicy_Cookie_{Cookie: cookie}
	case h.QueryParam != "":
		p.PolicySpecifier = &routev3.RouteAction_HashPolicy_QueryParameter_{
			QueryParameter: &routev3.RouteAction_HashPolicy_QueryParameter{Name: h.QueryParam},
		}
	default:
		p.PolicySpecifier = &routev3.RouteAction_HashPolicy_ConnectionProperties_{
			ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: true},
		}
	}
	return []*routev3.RouteAction_HashPolicy{p}
}
