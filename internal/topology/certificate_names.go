package topology

import (
	"crypto/x509"
	"slices"
	"strings"
)

// certificateNames returns the host names that a client may accept a certificate
// for, in lower case. The common name is none of them: clients no longer look at it.
func certificateNames(leaf *x509.Certificate) []string {
	names := make([]string, len(leaf.DNSNames))
	for i, name := range leaf.DNSNames {
		names[i] = strings.ToLower(name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// serveable reports whether there is a host that both the listener's hostname covers
// and one of the certificate's names is for. A wildcard stands for one label in a
// certificate, and for any number in a hostname.
func serveable(hostname string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		switch {
		case hostname == "" || name == hostname:
			return true
		case isWildcard(hostname):
			return strings.HasSuffix(name, hostname[1:])
		case isWildcard(name):
			label, ok := strings.CutSuffix(hostname, name[1:])
			return ok && label != "" && !strings.Contains(label, ".")
		default:
			return false
		}
	})
}
