package translate

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// SystemAuthorities returns what a proxy is given of the authorities that its host
// trusts; path is where it finds them.
func SystemAuthorities(key ir.SecretKey, path string) *ir.Secret {
	if path == "" {
		return nil
	}
	return &ir.Secret{Name: key, AuthoritiesFile: path}
}

// Authorities returns what a proxy is given of authorities; nil where none of them
// can be used.
func Authorities(key ir.SecretKey, from []*topology.Authority) *ir.Secret {
	var all strings.Builder
	for _, a := range from {
		all.WriteString(a.Certificates)
	}
	if all.Len() == 0 {
		return nil
	}
	return &ir.Secret{Name: key, Authorities: all.String()}
}
