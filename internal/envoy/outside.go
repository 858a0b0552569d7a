package envoy

import (
	"fmt"
	"net/netip"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	commondnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/common/dns/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	caresv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/rbac/matchers/upstream_ip_port/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// outsideDNS resolves a name that leads out of a cluster. The cluster's own domains are
// not added to it. Each address is an endpoint of its own, and not one of several that
// are tried in turn: that addressCheck checks all of those is not documented. Without
// tries, families that the pod has no address of must not be among them.
var outsideDNS = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
	Name: "envoy.clusters.dns",
	TypedConfig: constant(&dnsv3.DnsCluster{
		DnsLookupFamily: commondnsv3.DnsLookupFamily_ALL,
		RespectDnsTtl:   true,
		TypedDnsResolverConfig: &corev3.TypedExtensionConfig{
			Name: "envoy.network.dns_resolver.cares",
			TypedConfig: constant(&caresv3.CaresDnsResolverConfig{
				FilterUnroutableFamilies: true,
				DnsResolverOptions:       &corev3.DnsResolverOptions{NoDefaultSearchDomain: true},
			}),
		},
	}),
}}

// addressCheck is for a backend outside of the cluster: a request is refused, before there
// is a connection for it, where the endpoint chosen for it has an address that no name may
// lead to. Whoever serves the name's DNS decides what it resolves to, and could make the
// proxy speak to what only the cluster can reach.
func addressCheck(private string) (*hcmv3.HttpFilter, error) {
	permission, err := reachable(private)
	if err != nil {
		return nil, err
	}
	check, err := pack(&rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{
		Action: rbacconfigv3.RBAC_DENY,
		Policies: map[string]*rbacconfigv3.Policy{"address": {
			Permissions: []*rbacconfigv3.Permission{permission},
			Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_Any{Any: true}}},
		}},
	}})
	return &hcmv3.HttpFilter{Name: "envoy.filters.http.upstream_rbac", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: check}}, err
}

// reachable is what is denied: all addresses that are never reachable, and the private
// ones but for the ranges that are listed.
func reachable(private string) (*rbacconfigv3.Permission, error) {
	denied, err := anyOf(ir.Private)
	if err != nil {
		return nil, err
	}
	if private != "" {
		var allowed []netip.Prefix
		for text := range strings.SplitSeq(private, ",") {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("range of private addresses: %w", err)
			}
			allowed = append(allowed, prefix)
		}
		listed, err := anyOf(allowed)
		if err != nil {
			return nil, err
		}
		denied = &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_AndRules{AndRules: &rbacconfigv3.Permission_Set{Rules: []*rbacconfigv3.Permission{
			denied, {Rule: &rbacconfigv3.Permission_NotRule{NotRule: listed}},
		}}}}
	}
	never, err := anyOf(ir.Unreachable)
	if err != nil {
		return nil, err
	}
	return &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_OrRules{OrRules: &rbacconfigv3.Permission_Set{
		Rules: []*rbacconfigv3.Permission{never, denied},
	}}}, nil
}

// anyOf matches the address of the chosen endpoint.
func anyOf(ranges []netip.Prefix) (*rbacconfigv3.Permission, error) {
	set := &rbacconfigv3.Permission_Set{}
	for _, r := range ranges {
		matcher, err := pack(&upstreamv3.UpstreamIpPortMatcher{UpstreamIp: &corev3.CidrRange{
			AddressPrefix: r.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(r.Bits())),
		}})
		if err != nil {
			return nil, err
		}
		set.Rules = append(set.Rules, &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_Matcher{
			Matcher: &corev3.TypedExtensionConfig{Name: "envoy.rbac.matchers.upstream_ip_port", TypedConfig: matcher},
		}})
	}
	return &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_OrRules{OrRules: set}}, nil
}
