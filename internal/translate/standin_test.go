package translate_test

import (
	"testing"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// routeOf returns the route of a match, or the stand-in of one that has a mistake.
func routeOf(t *testing.T, v *schema.Validator, kind, name, match string) source.Object {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte("{apiVersion: gateway.networking.k8s.io/v1, kind: " + kind + ", metadata: {name: " + name +
		"}, spec: {parentRefs: [{name: gw}], rules: [{matches: [" + match + "]}]}}"))
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	id, err := v.Identify(content)
	if err != nil {
		t.Fatal(err)
	}
	o, errs := v.Decode(id, content)
	if len(errs) > 0 {
		o, _ = v.StandIn(id, content, errs)
	}
	return o
}

// A match that was to guard a part of what an older route takes goes before it, whatever is
// wrong with the match.
func TestStandInKeepsItsPlace(t *testing.T) {
	v, err := schema.New(kind.All, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ kind, guard, older string }{
		{"HTTPRoute", "{path: {value: admin}}", "{path: {value: /}}"},
		{"HTTPRoute", "{path: {value: /a//b}}", "{path: {value: /a}}"},
		{"HTTPRoute", "{path: {value: '/a#b'}}", "{path: {value: /a}, headers: [{name: x, value: y}]}"},
		{"HTTPRoute", "{path: {type: Exakt, value: /a}}", "{path: {type: RegularExpression, value: /(a|b)}}"},
		{"HTTPRoute", "{path: {type: Regexp, value: '/a/b.*'}}", "{path: {type: RegularExpression, value: '/a.*'}}"},
		{"HTTPRoute", "{path: 7}", "{path: {type: RegularExpression, value: '/.*'}}"},
		{"HTTPRoute", "7", "{path: {value: /a}}"},
		{"HTTPRoute", "{pat: {value: /a}}", "{path: {value: /}}"},
		{"HTTPRoute", "{path: {value: /a}, method: get}", "{path: {value: /a}}"},
		{"HTTPRoute", "{path: {type: Exact, value: /a}, method: get}", "{path: {type: Exact, value: /a}, headers: [{name: x, value: y}]}"},
		{"HTTPRoute", "{path: {value: /a}, headers: [{name: x, type: Glob, value: y}]}", "{path: {value: /a}}"},
		{"HTTPRoute", "{path: {type: Exact, value: /a}, headers: [{name: 'x y', value: z}]}", "{path: {type: Exact, value: /a}, queryParams: [{name: q, value: z}]}"},
		{"HTTPRoute", "{path: {value: /a}, header: [{name: x, value: y}]}", "{path: {value: /a}}"},
		{"HTTPRoute", "{path: {value: /a}, queryParams: [{name: q}]}", "{path: {value: /a}}"},
		{"GRPCRoute", "{method: {service: s.S, method: D/E}}", "{method: {service: s.S}}"},
		{"GRPCRoute", "{method: {type: Exakt, service: s.S, method: D}}", "{method: {service: s.S}}"},
		{"GRPCRoute", "{method: {service: s-s, method: D}}", "{method: {method: D}, headers: [{name: x, value: y}]}"},
		{"GRPCRoute", "{method: {service: s.S}, headers: [{name: x, type: Glob, value: y}]}", "{method: {service: s.S}}"},
	} {
		var entries []translate.HostEntry
		for i, match := range []string{c.older, c.guard} {
			name := [...]string{"older", "guard"}[i]
			o := routeOf(t, v, c.kind, name, match)
			rules := translate.Route(&topology.Route{Key: source.KeyOf(o), Object: o})
			if len(rules.Problems) > 0 {
				t.Errorf("%s: %+v", match, rules.Problems)
			}
			entries = append(entries, translate.HostEntry{Route: source.KeyOf(o), Created: time.Unix(int64(i), 0), Rules: rules.Rules})
		}
		host := translate.Host(translate.HostInput{Domain: "a", Port: 80, Entries: entries})
		if first := host.Rules[0]; first.Source.Name.Name != "guard" {
			t.Errorf("%s: %+v goes before it", c.guard, first.Match)
		}
	}
}
