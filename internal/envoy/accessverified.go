package envoy

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filterchainv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/filter_chain/v3"
)

// A connection outlives the listener that took it. Where clients need certificates from now on, there are
// connections of clients that have shown none, for as long as a listener drains; and where an AuthPolicy goes
// in the same edit, because certificates are in its place, nothing would guard what comes over them. So
// the route tables of such a listener, which old connections have from it at once, look at each request again.

// accessVerified is the filter in the slot that refuses requests over connections without a certificate that
// passed. A table alone fills it: no level within has one of this name, and none may switch the slot off.
const accessVerified = "verified"

// verifiedOnly is that filter. A connection manager takes the header away from what clients send, and sets it
// where each of them needs a certificate, see tellClients. That a connection is of TLS, or names a client, says
// less: Envoy's `authenticated` holds without a certificate, and for one that nobody knows.
var verifiedOnly = &corev3.TypedExtensionConfig{
	Name: accessVerified,
	TypedConfig: constant(allow(map[string]*rbacconfigv3.Policy{
		accessVerified: meets([]*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_Header{Header: present(clientCertHeader)}}}, nil),
	})),
}

// demandVerified fills the slot of a table with the filter, in front of what is there.
func demandVerified(m *routev3.RouteConfiguration) error {
	slot := &filterchainv3.FilterChainConfigPerRoute{FilterChain: &filterchainv3.FilterChain{}}
	if is := m.TypedPerFilterConfig[accessSlot]; is != nil {
		if err := is.UnmarshalTo(slot); err != nil {
			return err
		}
	}
	slot.FilterChain.Filters = slices.Insert(slot.FilterChain.Filters, 0, verifiedOnly)
	return tell(&m.TypedPerFilterConfig, accessSlot, slot)
}
