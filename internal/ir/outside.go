package ir

import (
	"net/netip"
	"slices"
	"strings"
)

// Unreachable are the ranges of addresses that no name may lead to from a cluster: this
// host, its link (where clouds have their metadata services), many hosts at once, and
// addresses that stand for others.
var Unreachable = prefixes(
	"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3",
	"::/127", "::ffff:0:0/96", "64:ff9b::/96", "2002::/16", "fe80::/10", "ff00::/8",
)

// Private are the ranges of addresses within organizations (RFC 1918, 4193, 6598), which
// clusters take for their pods and Services.
var Private = prefixes("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "64:ff9b:1::/48", "fc00::/7")

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// LocalName says why a DNS name can mean something else in a cluster than it does
// outside; empty for a name that can't. Resolvers read some numbers as addresses
// (inet_aton), and add the cluster's domains to short names.
func LocalName(name string) string {
	labels := strings.Split(strings.TrimSuffix(strings.ToLower(name), "."), ".")
	last := labels[len(labels)-1]
	switch {
	case strings.Contains(name, ":") || isNumber(last):
		return "it is an IP address"
	case len(labels) < 2:
		return "it has no dot"
	case last == "local" || last == "localhost" || last == "svc":
		return "names in ." + last + " are of the cluster or of a host"
	}
	if slices.Contains(labels[1:], "svc") {
		return "names with the label svc are of the cluster"
	}
	return ""
}

func isNumber(label string) bool {
	if strings.HasPrefix(label, "0x") {
		return true
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}
