package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// Nobody passes by an AuthPolicy with a mistake, and nothing but what it was for is closed.
func TestClosedPolicy(t *testing.T) {
	const gw = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]"
	for name, c := range map[string]struct{ spec, want string }{
		"a misspelt rule":         {gw + ", authentification: {a: {anonymous: {}}}", "defaults atomic: Gateway gw"},
		"a rule with two kinds":   {gw + ", authentication: {a: {anonymous: {}, basic: {secretRef: {name: x}}}}", "defaults atomic: Gateway gw"},
		"overrides":               {gw + ", overrides: {strategy: merge, authentication: {a: {jwt: {issuer: x}}}}", "overrides merge: Gateway gw"},
		"a misspelt strategy":     {gw + ", defaults: {strategy: merged, authentication: {a: {anonymous: {}}}}", "defaults merge: Gateway gw"},
		"defaults and overrides":  {gw + ", defaults: {authentication: {a: {anonymous: {}}}}, overrides: {}", "overrides atomic: Gateway gw"},
		"a section of a route":    {"targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r, sectionName: a}], authorization: {x: {}}", "defaults atomic: HTTPRoute r/a"},
		"a section with mistakes": {"targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r, sectionName: A_b}], authorization: {x: {clients: [a]}}", "defaults atomic: HTTPRoute r"},
		"a when and nothing else": {"targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}], authorization: {x: {when: 'true'}}", "defaults atomic: Gateway gw"},
		"answers and no rules":    {"targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}], responses: {forbidden: {status: 404}}", "defaults atomic: Gateway gw"},
		"answers beside defaults": {"targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}], defaults: {}, responses: {forbidden: {status: 404}}", "defaults atomic: Gateway gw"},
		"an answer that is none":  {"targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}], authorization: {x: {clients: [a]}}, responses: {forbidden: {status: 200}}", "defaults atomic: Gateway gw"},
		"a misspelt kind":         {"targetRefs: [{group: gateway.networking.k8s.io, kind: Gatway, name: gw}], authentication: {a: {anonymous: {}}}", "defaults atomic: Gateway gw"},
		"a misspelt group":        {"targetRefs: [{group: gateway.networking.k8s.oi, kind: Gateway, name: gw}], authentication: {a: {anonymous: {}}}", "defaults atomic: Gateway gw"},
		"no list":                 {"targetRefs: {kind: Gateway, name: gw}, authentication: {a: {anonymous: {}}}", "nothing without spec.targetRefs"},
		"one reference":           {"targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: gw}, authentication: {a: {anonymous: {}}}", "nothing without spec.targetRefs"},
		"a misspelt layer":        {gw + ", overides: {authentication: {a: {anonymous: {}}}}", "overrides merge: Gateway gw"},
		"targets that can't be":   {"targetRefs: [{group: '', kind: Bucket, name: x}, {group: gateway.networking.k8s.io, kind: GRPCRoute, name: r}], authentication: {a: {}}", "defaults atomic: GRPCRoute r without spec.targetRefs[0]"},
		"nothing that can be":     {"targetRefs: [{group: '', kind: Bucket, name: x}], authentication: {a: {}}", "nothing without spec.targetRefs[0]"},
		"a selector":              {"targetSelectors: [{kind: HTTPRoute, matchLabels: {guarded: 'yes', example.com/a: b}, sectionName: x}], authentication: {a: {}}", "defaults atomic: HTTPRoute example.com/a=b,guarded=yes/x"},
		"both":                    {gw + ", targetSelectors: [{kind: GRPCRoute, matchLabels: {a: b}}], authentication: {a: {}}", "defaults atomic: Gateway gw GRPCRoute a=b"},
		"labels without quotes":   {"targetSelectors: [{kind: HTTPRoute, matchLabels: {guarded: true, m: 7}}], authentication: {a: {anonymous: {}}}", "defaults atomic: HTTPRoute guarded=true,m=7"},
		"a label that is none":    {"targetSelectors: [{kind: HTTPRoute, matchLabels: {guarded: 'yes', 'a b': c, d: 'e f', g: [h]}}], authentication: {a: {anonymous: {}}}", "defaults atomic: HTTPRoute guarded=yes"},
		"a kind that is misspelt": {"targetSelectors: [{kind: HTTPRuote, matchLabels: {a: b}}], authentication: {a: {anonymous: {}}}", "defaults atomic: HTTPRoute a=b"},
		"expressions":             {"targetSelectors: [{kind: HTTPRoute, matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]}], authentication: {a: {anonymous: {}}}", "defaults atomic: HTTPRoute a=b"},
		"a selector of all":       {"targetSelectors: [{kind: HTTPRoute, matchLabels: {}}], authentication: {a: {anonymous: {}}}", "nothing without spec.targetSelectors[0]"},
		"a selector without any":  {"targetSelectors: [{kind: HTTPRoute}], authentication: {a: {anonymous: {}}}", "nothing without spec.targetSelectors[0]"},
		"no targets":              {"authentication: {a: {anonymous: {}}}", "nothing without spec.targetRefs"},
	} {
		o, unread := standInOf(t, "apiVersion: gatehouse.dev/v1alpha1\nkind: AuthPolicy\nmetadata: {name: p}\nspec: {"+c.spec+"}\n")
		if got := closedText(t, o, unread); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func closedText(t *testing.T, o any, unread []string) string {
	t.Helper()
	text := "nothing"
	if p, ok := o.(*v1alpha1.AuthPolicy); ok {
		at, layer := "defaults", p.Spec.Defaults
		if layer == nil {
			at, layer = "overrides", p.Spec.Overrides
		}
		if deny := layer.Authorization["closed"].Addresses.Deny; len(deny) != 2 {
			t.Errorf("somebody passes: %v", deny)
		}
		text = fmt.Sprintf("%s %s:", at, layer.Strategy)
		for _, ref := range p.Spec.TargetRefs {
			text += fmt.Sprintf(" %s %s", ref.Kind, ref.Name)
			if ref.SectionName != nil {
				text += "/" + string(*ref.SectionName)
			}
		}
		for _, of := range p.Spec.TargetSelectors {
			var labels []string
			for name, value := range of.MatchLabels {
				labels = append(labels, name+"="+string(value))
			}
			slices.Sort(labels)
			text += fmt.Sprintf(" %s %s", of.Kind, strings.Join(labels, ","))
			if of.SectionName != nil {
				text += "/" + string(*of.SectionName)
			}
		}
	}
	if len(unread) > 0 {
		text += " without " + strings.Join(unread, " ")
	}
	return text
}
