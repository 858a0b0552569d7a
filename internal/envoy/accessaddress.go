package envoy

import (
	"net/netip"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	ipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/ip/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// maxInList is how many ranges of addresses are looked at one by one. More of them are a tree,
// which takes the same time for thousands.
const maxInList = 16

// inTree reports whether the addresses of a condition are a tree. They are a list where only some
// requests must meet it, since an expression can't stand before a tree.
func inTree(c *ir.AccessCondition) bool {
	return c.When == "" && !c.Never && len(c.Allow)+len(c.Deny) > maxInList
}

// addresses is a list of ranges.
func addresses(ranges []netip.Prefix) *rbacconfigv3.Principal {
	set := &rbacconfigv3.Principal_Set{}
	for _, r := range cidrs(ranges) {
		set.Ids = append(set.Ids, &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_RemoteIp{RemoteIp: r}})
	}
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_OrIds{OrIds: set}}
}

// cidrs are ranges in Envoy's terms. IPv4 ones are there in IPv6 form too: that is how a trusted
// proxy may write the address of a client, and Envoy takes it for another one.
func cidrs(ranges []netip.Prefix) []*corev3.CidrRange {
	const mapped = 96 // the bits before the IPv4 address (RFC 4291, section 2.5.5.2)
	all := make([]*corev3.CidrRange, 0, 2*len(ranges))
	add := func(a netip.Addr, bits int) {
		all = append(all, &corev3.CidrRange{AddressPrefix: a.String(), PrefixLen: wrapperspb.UInt32(uint32(bits))}) //nolint:gosec // at most 128
	}
	for _, r := range ranges {
		add(r.Addr(), r.Bits())
		if r.Addr().Is4() {
			add(netip.AddrFrom16(r.Addr().As16()), mapped+r.Bits())
		}
	}
	return all
}

// addressTree refuses addresses that are denied, and then those that aren't allowed. There is
// another matcher, by which all would be one tree. In that the narrower of two ranges has the last
// word, and Envoy logs a line for each range, since the matcher is work in progress.
func addressTree(c *ir.AccessCondition) (message, error) {
	list := &xdsmatcherv3.Matcher_MatcherList{}
	last := rbacconfigv3.RBAC_ALLOW
	if len(c.Deny) > 0 {
		f, err := inRanges(c.Deny, rbacconfigv3.RBAC_DENY)
		if err != nil {
			return nil, err
		}
		list.Matchers = append(list.Matchers, f)
	}
	if len(c.Allow) > 0 {
		last = rbacconfigv3.RBAC_DENY
		f, err := inRanges(c.Allow, rbacconfigv3.RBAC_ALLOW)
		if err != nil {
			return nil, err
		}
		list.Matchers = append(list.Matchers, f)
	}
	otherwise, err := decide(last)
	if err != nil {
		return nil, err
	}
	return &rbacv3.RBAC{Matcher: &xdsmatcherv3.Matcher{
		MatcherType: &xdsmatcherv3.Matcher_MatcherList_{MatcherList: list}, OnNoMatch: otherwise,
	}}, nil
}

// inRanges decides about addresses in some ranges.
func inRanges(ranges []netip.Prefix, action rbacconfigv3.RBAC_Action) (*xdsmatcherv3.Matcher_MatcherList_FieldMatcher, error) {
	input, err := pack(&networkv3.SourceIPInput{})
	if err != nil {
		return nil, err
	}
	ips, err := pack(&ipv3.Ip{CidrRanges: cidrs(ranges), StatPrefix: "addresses"})
	if err != nil {
		return nil, err
	}
	on, err := decide(action)
	if err != nil {
		return nil, err
	}
	return &xdsmatcherv3.Matcher_MatcherList_FieldMatcher{
		Predicate: &xdsmatcherv3.Matcher_MatcherList_Predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_{
			SinglePredicate: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate{
				Input: &xdscorev3.TypedExtensionConfig{Name: "address", TypedConfig: input},
				Matcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_CustomMatch{
					CustomMatch: &xdscorev3.TypedExtensionConfig{Name: "ranges", TypedConfig: ips},
				},
			},
		}},
		OnMatch: on,
	}, nil
}

// decide is what becomes of a request.
func decide(action rbacconfigv3.RBAC_Action) (*xdsmatcherv3.Matcher_OnMatch, error) {
	config, err := pack(&rbacconfigv3.Action{Name: "addresses", Action: action})
	if err != nil {
		return nil, err
	}
	return &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Action{
		Action: &xdscorev3.TypedExtensionConfig{Name: "action", TypedConfig: config},
	}}, nil
}
