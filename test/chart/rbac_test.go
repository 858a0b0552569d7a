package chart

import (
	"bytes"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// right is one thing that a rule of a role permits.
type right struct{ group, resource, verb string }

// TestRights protects against a kind that the controller reads or writes a status of,
// and the chart doesn't let it, and against rights that nothing needs any more.
func TestRights(t *testing.T) {
	t.Parallel()
	const name = "gatehouse"
	got := clusterRoles(t, render(t, "--set", withoutCRDs))
	want := map[string]map[right]bool{name + "-cluster": {}, name + "-read": {}, name + "-status": {}}
	permit := func(role, group, resource string, verbs ...string) {
		for _, verb := range verbs {
			want[role][right{group, resource, verb}] = true
		}
	}
	for d := range kind.All.Rows() {
		reads, writes := name+"-read", name+"-status"
		if d.Scope == kind.ClusterScoped {
			reads, writes = name+"-cluster", name+"-cluster"
		}
		permit(reads, d.Kind.Group(), d.Plural, "list", "watch")
		if d.Reading == kind.ByName {
			permit(reads, d.Kind.Group(), d.Plural, "get")
		}
		if d.Status != nil {
			permit(writes, d.Kind.Group(), d.Plural+"/status", "patch")
		}
	}
	// What is done besides reading objects and writing statuses.
	permit(name+"-cluster", kind.GatewayAPI, "gatewayclasses", "patch")          // their finalizer
	permit(name+"-cluster", kind.Extensions, "customresourcedefinitions", "get") // the channel, at the start
	permit(name+"-cluster", "authentication.k8s.io", "tokenreviews", "create")   // proxies' tokens
	permit(name+"-read", kind.GatewayAPI, "gateways", "get")                     // whether the one of a fleet is gone
	permit(name+"-status", "events.k8s.io", "events", "create", "patch")
	for role, rights := range want {
		for r := range rights {
			if !got[role][r] {
				t.Errorf("%s doesn't permit %s of %s in group %q", role, r.verb, r.resource, r.group)
			}
		}
		for r := range got[role] {
			if !rights[r] {
				t.Errorf("%s permits %s of %s in group %q, which nothing needs", role, r.verb, r.resource, r.group)
			}
		}
	}
}

// clusterRoles returns what the ClusterRoles of a manifest permit, by their names.
func clusterRoles(t *testing.T, manifest []byte) map[string]map[right]bool {
	t.Helper()
	out := map[string]map[right]bool{}
	for doc := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(doc, &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind != "ClusterRole" {
			continue
		}
		out[role.Name] = map[right]bool{}
		for _, rule := range role.Rules {
			if len(rule.ResourceNames) > 0 || slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*") {
				t.Errorf("%s has a rule that this test can't read: %v", role.Name, rule)
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						out[role.Name][right{group, resource, verb}] = true
					}
				}
			}
		}
	}
	return out
}
