//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// selectorPolicy is an AuthPolicy for HTTPRoutes with labels, in flow notation.
func selectorPolicy(name, labels, spec string) string {
	return fmt.Sprintf(`---
apiVersion: gatehouse.dev/v1alpha1
kind: AuthPolicy
metadata: {name: %s, namespace: %s}
spec:
  targetSelectors: [{kind: HTTPRoute, matchLabels: {%s}}]
%s
`, name, siteNamespace, labels, indent(spec))
}

// labelledHome is the route of home.example with labels, in flow notation.
func labelledHome(labels string) string {
	return strings.Replace(siteRoute("home", "home.example", "v1"), "{name: home, ", "{name: home, labels: {"+labels+"}, ", 1)
}

// TestSelectedRoutes protects who is guarded by labels: routes of the policy's namespace that have
// them, as long as they do, and by no request less where one policy follows another.
func TestSelectedRoutes(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{
		"policy.yaml":  selectorPolicy("guard", `guarded: "yes"`, needsOffice),
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}"),
		"other.yaml": `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: other, namespace: other, labels: {guarded: "yes"}}
spec:
  parentRefs: [{name: gw, namespace: ` + siteNamespace + `}]
  hostnames: [other.example]
  rules: [{filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplaceFullPath, replaceFullPath: /there}}}]}]
`,
	})
	const home, other = "http://home.example/", "http://other.example/"
	s.answers(t, home, http.StatusOK)
	s.answers(t, other, http.StatusFound)
	s.says(t, "AuthPolicy guard", "No HTTPRoute of namespace "+siteNamespace+" has the labels guarded=yes")

	s.write(t, "home.yaml", labelledHome(`guarded: "yes"`))
	s.answers(t, home, http.StatusForbidden)
	s.answers(t, other, http.StatusFound)
	s.says(t, "AuthPolicy guard", "All rules of the policy are in force")

	// From the labels of one policy to those of another, with one of them on the way or both.
	s.write(t, "team.yaml", selectorPolicy("team", "team: shop", needsOffice))
	l := startLoad(t, s.listener(), 2, func() string { return "home.example" })
	for i := range 20 {
		labels := `guarded: "yes"`
		if i%2 == 0 {
			labels = "team: shop"
		}
		if i%4 == 1 {
			s.write(t, "home.yaml", labelledHome(`guarded: "yes", team: shop`))
			l.more(t, 20)
		}
		s.write(t, "home.yaml", labelledHome(labels))
		l.more(t, 20)
	}
	if passed, wrong := l.passed(); passed != 0 {
		t.Errorf("%d of %d requests passed: %v", passed, l.sent.Load(), wrong)
	}

	s.write(t, "home.yaml", labelledHome(`guarded: "no"`))
	s.answers(t, home, http.StatusOK)
}
