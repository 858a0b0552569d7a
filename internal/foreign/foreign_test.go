package foreign

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

func TestPolicyOf(t *testing.T) {
	t.Parallel()
	const route = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}"
	for name, tc := range map[string]struct {
		text string
		want []string // the targets; nil for no policy
	}{
		"several targets": {
			"{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: SecurityPolicy, metadata: {namespace: a, name: x}, spec: {targetRefs: [" + route + ", {group: gateway.networking.k8s.io, kind: Gateway, name: web, sectionName: s}]}}",
			[]string{"HTTPRoute a/shop", "Gateway a/web"},
		},
		"one target, in no namespace": {
			"{apiVersion: kuadrant.io/v1, kind: AuthPolicy, metadata: {name: x}, spec: {targetRef: " + route + "}}",
			[]string{"HTTPRoute default/shop"},
		},
		"a class": {
			"{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {namespace: a, name: x}, spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: GatewayClass, name: c}]}}",
			[]string{"GatewayClass c"},
		},
		"pods":                    {"{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {namespace: a, name: x}, spec: {selector: {matchLabels: {app: b}}}}", nil},
		"none of the table":       {"{apiVersion: kuadrant.io/v1, kind: DNSPolicy, metadata: {namespace: a, name: x}, spec: {targetRef: " + route + "}}", nil},
		"ours":                    {"{apiVersion: gatehouse.dev/v1alpha1, kind: AuthPolicy, metadata: {namespace: a, name: x}, spec: {targetRefs: [" + route + "]}}", nil},
		"values of another shape": {"{apiVersion: kuadrant.io/v1, kind: AuthPolicy, metadata: {name: x}, spec: {targetRef: [1], targetRefs: {a: b}}}", nil},
		"no name":                 {"{apiVersion: kuadrant.io/v1, kind: AuthPolicy, spec: {targetRef: " + route + "}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var content map[string]any
			if err := yaml.Unmarshal([]byte(tc.text), &content); err != nil {
				t.Fatal(err)
			}
			p, ok := PolicyOf(content)
			var got []string
			for _, target := range p.Targets {
				got = append(got, target.String())
			}
			if ok != (tc.want != nil) || !slices.Equal(got, tc.want) {
				t.Errorf("it targets %q (%v), want %q", got, ok, tc.want)
			}
		})
	}
}

// Kinds that are read here are no other implementation's.
func TestKindsAreOthers(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds {
		if kind.All.Of(k.Kind) != nil || k.Ours.Name() != "" && kind.All.Of(k.Ours) == nil {
			t.Errorf("%s.%s is read here, or the kind in its place is not", k.Plural, k.Group())
		}
	}
}
