package translate

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// authoritiesMark begins the names of secrets that hold authorities: no namespace
// begins with it.
const authoritiesMark = "ca:"

// AuthoritiesName is the name of the secret with the certificates of objects: it
// stays the same when they are rotated, and is the same for all that trust the
// same objects, in whatever order they name them.
func AuthoritiesName(refs []object.Key) string {
	sorted := slices.Compact(slices.SortedFunc(slices.Values(refs), object.Key.Compare))
	parts := make([]string, len(sorted))
	for i, ref := range sorted {
		parts[i] = ref.Kind.Name() + "/" + ref.Namespace + "/" + ref.Name.Name
	}
	return authoritiesMark + strings.Join(parts, ",")
}

// ParseAuthoritiesName returns the objects in a name that AuthoritiesName made.
func ParseAuthoritiesName(name string) (refs []object.Key, ok bool) {
	rest, ok := strings.CutPrefix(name, authoritiesMark)
	if !ok {
		return nil, false
	}
	for part := range strings.SplitSeq(rest, ",") {
		title, full, _ := strings.Cut(part, "/")
		namespace, name, ok := strings.Cut(full, "/")
		if !ok {
			return nil, false
		}
		refs = append(refs, object.Key{Kind: authorityKind(title), Name: object.Name{Namespace: namespace, Name: name}})
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

// authorityKind returns the kind of objects with certificates that has a name.
func authorityKind(name string) object.Kind {
	for _, k := range []object.Kind{kind.ConfigMap, kind.Secret, kind.ClusterTrustBundle, topology.SystemAuthorities.Kind} {
		if k.Name() == name {
			return k
		}
	}
	return object.Kind{}
}
