package inherited

import (
	"fmt"
	"net/netip"
)

// Addresses reads ranges of IP addresses.
func (r *Reader) Addresses(field string, in []string) (out []netip.Prefix) {
	for i, text := range in {
		prefix, readable := addressRange(text)
		if !readable {
			r.Problem(fmt.Sprintf("%s[%d]", field, i), "is %q, which is no range of addresses such as 192.0.2.0/24", text)
			continue
		}
		out = append(out, prefix.Masked())
	}
	return out
}

// addressRange reads a range of IP addresses, or one address. IPv4 addresses that are written
// as IPv6 ones are what they stand for: clients have no others.
func addressRange(text string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		single, err := netip.ParseAddr(text)
		if err != nil || single.Zone() != "" {
			return netip.Prefix{}, false
		}
		prefix = netip.PrefixFrom(single, single.BitLen())
	}
	const mapped = 96 // the bits before the IPv4 address (RFC 4291, section 2.5.5.2)
	if !prefix.Addr().Is4In6() {
		return prefix, true
	}
	return netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mapped), prefix.Bits() >= mapped
}
