package keyset

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Reach is where fetching may lead. It is the text of what a class allows, so that Keys
// compare: two policies under one Reach share a fetch, and what one class allows is of no
// use under another.
type Reach string

const (
	// Public is hosts with public names and addresses, by https.
	Public Reach = ""
	// Host is for files: whoever writes them runs the process too. It may go wherever this
	// host goes, but for what hands out credentials to whoever asks.
	Host Reach = "host"
)

// Allowed are hosts that may be reached beside the public ones.
type Allowed struct {
	Names     []string       `json:"names"` // *.example.com stands for all below
	Addresses []netip.Prefix `json:"addresses,omitempty"`
}

// Beyond is Public with some more hosts.
func Beyond(list []Allowed) Reach {
	if len(list) == 0 {
		return Public
	}
	text, _ := json.Marshal(list) //nolint:errchkjson // of our own types
	return Reach(text)
}

// allowed returns what may be reached beside public hosts.
func (r Reach) allowed() (list []Allowed) {
	if r != Public && r != Host {
		_ = json.Unmarshal([]byte(r), &list) // Beyond has written it
	}
	return list
}

// has reports whether a name is among those allowed, and whether by itself.
func (a Allowed) has(host string) (has, exact bool) {
	for _, name := range a.Names {
		if host == name {
			return true, true
		}
		if suffix, wild := strings.CutPrefix(name, "*"); wild && len(host) > len(suffix) && strings.HasSuffix(host, suffix) {
			has = true
		}
	}
	return has, false
}

// CheckURL reads a URL that may be fetched, and says what is wrong with any other.
func (r Reach) CheckURL(text string) (u *url.URL, why string) {
	if u, why = parseURL(text, r); why != "" || r == Host {
		return u, why
	}
	host := hostOf(u.Hostname())
	local := ir.LocalName(host)
	if local == "" || r.names(host) {
		return u, ""
	}
	return nil, fmt.Sprintf("has the host %s, which the GatewayClass doesn't allow (allow.keySets): %s", quote(host), local)
}

// names reports whether a name is allowed by itself.
func (r Reach) names(host string) bool {
	return slices.ContainsFunc(r.allowed(), func(a Allowed) bool { _, exact := a.has(host); return exact })
}

// LookupName is the name to resolve for a host. A dot at its end keeps the resolver from
// adding the domains of the cluster to it, which would lead there: "payments.victim" is a
// Service too. Names that are allowed by themselves are resolved as they are.
func (r Reach) LookupName(host string) string {
	if host = hostOf(host); r == Host || r.names(host) {
		return host
	}
	return host + "."
}

// CheckAddress says why an address that a host has resolved to must not be connected to;
// empty if it may be. It doesn't say which it is: whoever writes a policy must not learn by
// it what names stand for within an organization.
func (r Reach) CheckAddress(host string, ip netip.Addr) string {
	ip = Plain(ip)
	refused := within(ip, never)
	if r == Host {
		refused = within(ip, credentials)
	}
	if refused {
		return quote(hostOf(host)) + " resolves to an address where no key sets are fetched from"
	}
	if r == Host || !within(ip, inside) {
		return ""
	}
	for _, a := range r.allowed() {
		if has, _ := a.has(hostOf(host)); has && within(ip, a.Addresses) {
			return ""
		}
	}
	return quote(hostOf(host)) + " resolves to a private address, which the GatewayClass doesn't allow (allow.keySets)"
}

// hostOf is a host as names compare.
func hostOf(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// never are addresses that no class can allow: of this host, of its link, of many at once,
// and those that stand for others in ways that Plain doesn't read.
var never = slices.Concat(ir.Unreachable, prefixes(
	"::/96",                          // IPv4-compatible
	"2001::/32",                      // Teredo
	"192.0.0.0/24", "192.88.99.0/24", // of protocols, relays of 6to4
	"100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::/32", // metadata services that are not link-local
))

// inside are addresses within organizations.
var inside = slices.Concat(ir.Private, prefixes("198.18.0.0/15", "fec0::/10"))

// credentials are addresses at which clouds hand out credentials, and others on the link.
var credentials = prefixes("169.254.0.0/16", "fe80::/10", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::/32")

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

func within(ip netip.Addr, ranges []netip.Prefix) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// translated is where NAT64 has the IPv4 addresses (RFC 6052, section 2.1). In a cluster with
// IPv6 alone all hosts of IPv4 have such addresses.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// Plain returns the IPv4 address that an IPv6 address stands for, or the address itself.
func Plain(ip netip.Addr) netip.Addr {
	ip = ip.WithZone("")
	if translated.Contains(ip) {
		b := ip.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip.Unmap()
}
