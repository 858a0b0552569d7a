package fetch

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/keyset"
)

// refusal is why an address is not connected to.
type refusal string

func (r refusal) Error() string { return string(r) }

// connect connects to one of the addresses of a host that may be connected to. What it
// connects to is the address that was checked: were the name resolved once more, its server
// could give another one then (DNS rebinding).
func (f *Fetcher) connect(ctx context.Context, k keyset.Key, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := f.resolve(ctx, k.Reach.LookupName(host))
	if err != nil {
		return nil, err
	}
	refused := f.refused(ctx, k.Reach)
	var failure error = refusal("its name has no address")
	tried, refusals := 0, 0
	for _, ip := range addresses {
		if why := k.Reach.CheckAddress(host, ip); why != "" {
			if refusals++; tried == 0 && refusals == 1 {
				failure = refusal(why)
			}
			continue
		}
		if slices.Contains(refused, keyset.Plain(ip)) {
			failure = refusal("it is the API server, where no key sets are fetched from")
			continue
		}
		if tried == maxAddresses {
			break
		}
		tried++
		one, cancel := context.WithTimeout(ctx, f.pace.address)
		conn, err := f.dial(one, network, net.JoinHostPort(ip.Unmap().String(), port))
		cancel()
		if err == nil {
			return conn, nil
		}
		failure = err
	}
	return nil, failure
}

// resolve returns the addresses of a name, those of IPv4 first: hosts without IPv6 often have
// names with.
func (f *Fetcher) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(strings.TrimSuffix(name, ".")); err == nil {
		return []netip.Addr{ip}, nil
	}
	addresses, err := f.opts.Resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(addresses, func(a, b netip.Addr) int { return a.Unmap().BitLen() - b.Unmap().BitLen() })
	return addresses, nil
}

// refused are the addresses that no key may lead to. A name among them that can't be resolved
// has none.
func (f *Fetcher) refused(ctx context.Context, r keyset.Reach) []netip.Addr {
	if r == keyset.Host {
		return nil
	}
	var out []netip.Addr
	for _, host := range f.opts.Refused {
		addresses, err := f.resolve(ctx, host)
		if err != nil {
			continue
		}
		for _, ip := range addresses {
			out = append(out, keyset.Plain(ip))
		}
	}
	return out
}
