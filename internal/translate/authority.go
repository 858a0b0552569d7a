package translate

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// authoritiesMark begins the names of secrets that hold authorities: no namespace
// begins with it.
const authoritiesMark = "ca:"

// AuthoritiesName is the name of the secret with the certificates of objects: it
// stays the same when they are rotated, and is the same for all that trust the
// same objects, in whatever order they name them.
func AuthoritiesName(refs []topology.AuthorityRef) string {
	sorted := slices.Compact(slices.SortedFunc(slices.Values(refs), topology.AuthorityRef.Compare))
	parts := make([]string, len(sorted))
	for i, ref := range sorted {
		parts[i] = ref.Kind + "/" + ref.Namespace + "/" + ref.Name.Name
	}
	return authoritiesMark + strings.Join(parts, ",")
}

// ParseAuthoritiesName returns the objects in a name that AuthoritiesName made.
func ParseAuthoritiesName(name string) (refs []topology.AuthorityRef, ok bool) {
	rest, ok := strings.CutPrefix(name, authoritiesMark)
	if !ok {
		return nil, false
	}
	for part := range strings.SplitSeq(rest, ",") {
		kind, full, _ := strings.Cut(part, "/")
		namespace, title, ok := strings.Cut(full, "/")
		if !ok {
			return nil, false
		}
		refs = append(refs, topology.AuthorityRef{Kind: kind, Name: ir.Name{Namespace: namespace, Name: title}})
	}
	return refs, true
}

// SystemAuthorities returns what a proxy is given of the authorities that its host
// trusts; path is where it finds them.
func SystemAuthorities(name, path string) *ir.Secret {
	if path == "" {
		return nil
	}
	return &ir.Secret{Name: name, AuthoritiesFile: path}
}

// Authorities returns what a proxy is given of authorities; nil where none of them
// can be used.
func Authorities(name string, from []*topology.Authority) *ir.Secret {
	var all strings.Builder
	for _, a := range from {
		all.WriteString(a.Certificates)
	}
	if all.Len() == 0 {
		return nil
	}
	return &ir.Secret{Name: name, Authorities: all.String()}
}
