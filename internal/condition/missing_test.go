package condition

import (
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// The name in a reference can be any text. The grant that a person is told to paste permits
// an object of that name, and no others.
func TestGrantPermitsOneName(t *testing.T) {
	for _, name := range []string{
		"api",
		`api}, {group: "", kind: Secret`,
		"api}]}} # ",
		"api\n---\nkind: Secret",
		`"`,
	} {
		grant := Grant{FromKind: "HTTPRoute", From: "shop", Kind: "Service", Namespace: "pay", Name: name}
		var got gwv1.ReferenceGrant
		if err := yaml.UnmarshalStrict([]byte(grant.YAML()), &got); err != nil {
			t.Errorf("name %q: %v in %s", name, err, grant.YAML())
			continue
		}
		if to := got.Spec.To; len(to) != 1 || to[0].Kind != "Service" || to[0].Name == nil || string(*to[0].Name) != name {
			t.Errorf("name %q: the grant permits %+v: %s", name, to, grant.YAML())
		}
	}
}
