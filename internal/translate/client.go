package translate

import (
	"net/netip"
	"strings"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Client returns how the listeners of a port treat clients by settings that topology has
// checked; nil is the default of everything.
func Client(c *v1alpha1.Client, port uint16) ir.Client {
	if c == nil {
		return ir.Client{}
	}
	out := ir.Client{
		ProxyProtocol: c.ProxyProtocol != nil && *c.ProxyProtocol,
		TrustedHops:   number(c.TrustedHops),
		HTTP10:        c.HTTP10 != nil && *c.HTTP10,
	}
	for _, text := range c.TrustedAddresses {
		if r, err := netip.ParsePrefix(text); err == nil { // it has been checked; who isn't known is not believed
			out.TrustedAddresses = append(out.TrustedAddresses, r.Masked())
		}
	}
	if c.AddressHeader != nil && len(out.TrustedAddresses) > 0 {
		out.AddressHeader = strings.ToLower(*c.AddressHeader)
	}
	if l := c.Limits; l != nil {
		out.Limits = ir.Limits{
			HeadersKiB:     number(l.HeadersKiB),
			Headers:        number(l.Headers),
			Streams:        number(l.Streams),
			BufferKiB:      number(l.BufferKiB),
			HeadersTimeout: lasting(l.HeadersTimeout),
			IdleTimeout:    lasting(l.IdleTimeout),
			Duration:       lasting(l.ConnectionDuration),
		}
	}
	if c.Paths != nil {
		out.Paths = paths(c.Paths.Of(int32(port)))
	}
	return out
}

func paths(r v1alpha1.PathRules) (p ir.Paths) {
	p.KeepDoubled = r.MergeSlashes != nil && !*r.MergeSlashes
	if r.EscapedSlashes != nil && *r.EscapedSlashes != v1alpha1.RejectEscapedSlashes {
		p.Escaped = ir.EscapedSlashes(*r.EscapedSlashes)
	}
	return p
}

// number is what the schema has bounded; 0 where it isn't set.
func number(p *int32) uint32 {
	if p == nil {
		return 0
	}
	return uint32(*p)
}

// lasting is a duration that has been checked; 0 where it isn't set.
func lasting(d *gwv1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	out, _ := time.ParseDuration(string(*d))
	return out
}
