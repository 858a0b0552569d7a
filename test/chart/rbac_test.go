package chart

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/foreign"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// right is one thing that a rule of a role permits.
type right struct{ group, resource, verb string }

// TestRights protects against a kind that is read or given a status, and the chart or
// the manifest of the provisioner doesn't let it, and against rights that nothing needs
// any more.
func TestRights(t *testing.T) {
	t.Parallel()
	got := clusterRoles(t, render(t, "--set", withoutCRDs))
	maps.Copy(got, clusterRoles(t, read(t, "../../config/provisioner.yaml")))
	want := map[string]map[right]bool{}
	permit := func(group, resource string, verbs []string, roles ...string) {
		for _, role := range roles {
			if want[role] == nil {
				want[role] = map[right]bool{}
			}
			for _, verb := range verbs {
				want[role][right{group, resource, verb}] = true
			}
		}
	}
	for d := range kind.All.Rows() {
		reads, writes := []string{"gatehouse-read", "gatehouse-static"}, []string{"gatehouse-status", "gatehouse-static"}
		if d.Scope == kind.ClusterScoped {
			reads, writes = []string{"gatehouse-cluster", "gatehouse-static"}, []string{"gatehouse-cluster"}
		}
		permit(d.Kind.Group(), d.Plural, []string{"list", "watch"}, reads...)
		if d.Reading != kind.Everywhere {
			permit(d.Kind.Group(), d.Plural, []string{"get"}, reads...)
		}
		if d.Status != nil {
			permit(d.Kind.Group(), d.Plural+"/status", []string{"patch"}, writes...)
		}
	}
	for _, k := range foreign.Kinds {
		permit(k.Group(), k.Plural, []string{"list", "watch"}, "gatehouse-read", "gatehouse-static")
	}
	// What is done besides reading objects and writing statuses.
	permit(kind.GatewayAPI, "gatewayclasses", []string{"get", "patch"}, "gatehouse-cluster") // whether one exists, and their finalizer
	permit(kind.GatewayAPI, "gatewayclasses", []string{"create"}, "gatehouse-cluster")       // that of the release, when it is gone
	permit("authentication.k8s.io", "tokenreviews", []string{"create"}, "gatehouse-cluster") // proxies' tokens
	permit(kind.GatewayAPI, "gateways", []string{"get"}, "gatehouse-read")                   // whether the one of a fleet is gone
	permit("events.k8s.io", "events", []string{"create", "patch"}, "gatehouse-status", "gatehouse-static")
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

// TestRightsApart protects what the roles have processes of their own for: who makes fleets reads no Secrets, routes and
// policies, and writes no status, and who serves configuration makes nothing that runs.
func TestRightsApart(t *testing.T) {
	t.Parallel()
	got := clusterRoles(t, render(t, "--set", withoutCRDs, "--set", "infrastructure.apart=true"))
	writes := []string{"create", "update", "patch", "delete"}
	making, serving := 0, 0
	for role, rights := range got {
		for r := range rights {
			switch {
			case strings.HasPrefix(role, "gatehouse-infrastructure-"):
				making++
				if r.resource == "secrets" || strings.HasSuffix(r.resource, "routes") || strings.HasSuffix(r.resource, "policies") || strings.HasSuffix(r.resource, "/status") {
					t.Errorf("who makes fleets may %s %s", r.verb, r.resource)
				}
			case strings.HasSuffix(r.resource, "/status") || r.resource == "events" || r.resource == "tokenreviews" || r.resource == "gatewayclasses":
				serving++
			default:
				if slices.Contains(writes, r.verb) {
					t.Errorf("who serves configuration may %s %s", r.verb, r.resource)
				}
			}
		}
	}
	if making < 20 || serving < 10 {
		t.Errorf("%d rights of who makes fleets and %d of who serves are too few to tell", making, serving)
	}
	for d := range kind.All.OfFleets().Rows() {
		role := "gatehouse-infrastructure-read"
		if d.Scope == kind.ClusterScoped {
			role = "gatehouse-infrastructure-cluster"
		}
		for _, verb := range []string{"list", "watch"} {
			if !got[role][right{d.Kind.Group(), d.Plural, verb}] {
				t.Errorf("%s doesn't permit %s of %s", role, verb, d.Plural)
			}
		}
	}
	if _, err := helm("template", "gatehouse", chart, "--set", "infrastructure.apart=true,config.infrastructure.type=None"); err == nil {
		t.Error("fleets are made apart where there are none")
	}
}

// TestEventsOfClasses protects whoever grants some namespaces only: Events of GatewayClasses are
// written in namespace default, whatever these are.
func TestEventsOfClasses(t *testing.T) {
	t.Parallel()
	for _, namespaces := range []string{"shop", "default"} {
		permitted, bound := false, false
		for doc := range bytes.SplitSeq(render(t, "--set", withoutCRDs, "--set", "config.sources[0].kubernetes.namespaces={"+namespaces+"}"), []byte("\n---\n")) {
			var role rbacv1.Role
			if err := yaml.Unmarshal(doc, &role); err != nil {
				t.Fatal(err)
			}
			if role.Namespace != metav1.NamespaceDefault || role.Name != "gatehouse-claim" {
				continue
			}
			bound = bound || role.Kind == "RoleBinding"
			permitted = permitted || slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Equal(r.APIGroups, []string{"events.k8s.io"}) && slices.Equal(r.Resources, []string{"events"}) && slices.Equal(r.Verbs, []string{"create", "patch"})
			})
		}
		if !permitted || !bound {
			t.Errorf("with rights in namespace %s only, Events of GatewayClasses can't be written", namespaces)
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
