package local

import (
	"net"
	"net/netip"
)

// Addresses returns a test for the addresses that this host can bind, as
// they are now: all of loopback's and those of its interfaces.
func Addresses() func(string) bool {
	own := map[netip.Addr]bool{}
	if addrs, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				own[prefix.Addr().Unmap()] = true
			}
		}
	}
	return func(s string) bool {
		ip, err := netip.ParseAddr(s)
		return err == nil && (own[ip.Unmap()] || ip.Is4() && ip.IsLoopback() || ip.IsUnspecified())
	}
}
