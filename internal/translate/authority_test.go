package translate

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// The name of a secret with authorities leads back to the objects that hold them.
func TestAuthoritiesName(t *testing.T) {
	bundle := object.Key{Kind: kind.ClusterTrustBundle, Name: object.Name{Name: "example.com:foo:v1"}}
	config := object.Key{Kind: kind.ConfigMap, Name: object.Name{Namespace: "a", Name: "x.y"}}
	name := AuthoritiesName([]object.Key{config, bundle, config})
	if other := AuthoritiesName([]object.Key{bundle, config}); other != name {
		t.Errorf("the same objects in another order are %q, not %q", other, name)
	}
	refs, ok := ParseAuthoritiesName(name)
	if d := gocmp.Diff([]object.Key{bundle, config}, refs); d != "" || !ok {
		t.Errorf("%q leads elsewhere (-want +got):\n%s", name, d)
	}
	for _, other := range []string{"ns/name", "ca/name", "", "ca:", "ca:ConfigMap"} {
		if _, ok := ParseAuthoritiesName(other); ok {
			t.Errorf("%q passes for a name of authorities", other)
		}
	}
}
