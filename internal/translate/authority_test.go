package translate

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// The name of a secret with authorities leads back to the objects that hold them.
func TestAuthoritiesName(t *testing.T) {
	bundle := topology.AuthorityRef{Kind: "ClusterTrustBundle", Name: ir.Name{Name: "example.com:foo:v1"}}
	config := topology.AuthorityRef{Kind: "ConfigMap", Name: ir.Name{Namespace: "a", Name: "x.y"}}
	name := AuthoritiesName([]topology.AuthorityRef{config, bundle, config})
	if other := AuthoritiesName([]topology.AuthorityRef{bundle, config}); other != name {
		t.Errorf("the same objects in another order are %q, not %q", other, name)
	}
	refs, ok := ParseAuthoritiesName(name)
	if d := gocmp.Diff([]topology.AuthorityRef{bundle, config}, refs); d != "" || !ok {
		t.Errorf("%q leads elsewhere (-want +got):\n%s", name, d)
	}
	for _, other := range []string{"ns/name", "ca/name", "", "ca:", "ca:ConfigMap"} {
		if _, ok := ParseAuthoritiesName(other); ok {
			t.Errorf("%q passes for a name of authorities", other)
		}
	}
}
