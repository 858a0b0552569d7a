package conformance

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var auditLog = flag.String("audit-log", "", "The API server's audit log of a run, which TestRights compares with the roles of the manifest.")

// account is a ServiceAccount.
type account struct{ namespace, name string }

// user is the name by which the API server knows it.
func (a account) user() string { return "system:serviceaccount:" + a.namespace + ":" + a.name }

// right is one thing that a role allows, or that was done.
type right struct{ group, resource, verb string }

// rare returns what uses a right that a run of the suite need not use; empty for
// those that it must.
func rare(m mode, r right) string {
	if why := m.rare[r.resource]; why != "" {
		return why
	}
	switch r.group {
	case "extensions.istio.io", "gateway.envoyproxy.io", "gateway.kgateway.dev", "gateway.nginx.org", "kuadrant.io", "security.istio.io":
		return "the cluster has no policies of other implementations"
	}
	switch r {
	case right{"", "serviceaccounts", "get"}:
		return "a proxy asks for a certificate whose Gateway is gone"
	case right{"", "secrets", "update"}:
		return "the authority is renewed once in months"
	case right{"gateway.networking.k8s.io", "gateways", "get"}:
		return "a fleet is found whose Gateway is gone"
	case right{"gateway.networking.k8s.io", "gatewayclasses", "get"}:
		return "a fleet is found whose Gateway names another class"
	case right{"gateway.networking.k8s.io", "gatewayclasses", "create"}:
		return "the class of the installation is gone"
	}
	switch r.resource {
	case "daemonsets", "horizontalpodautoscalers", "poddisruptionbudgets":
		if r.verb != "list" && r.verb != "watch" {
			return "parameters ask for them"
		}
	case "serviceimports", "inferencepools", "inferencepools/status":
		return "not every cluster defines them"
	case "clustertrustbundles":
		return "not every cluster serves them"
	case "xbackends", "xbackendtrafficpolicies", "xbackends/status", "xbackendtrafficpolicies/status":
		return "the experimental channel has them, and the suite doesn't use them"
	case "authpolicies/status", "ratelimitpolicies/status", "trafficpolicies/status":
		return "the suite knows none of our own policies"
	case "routefilters/status":
		return "the suite refers to no filters of ours"
	case "gatewayblueprints/status", "gatewayclassvalues/status", "gatewayvalues/status":
		return "the suite knows no blueprints"
	case "pods":
		if r.verb == "list" || r.verb == "watch" {
			return "they are read for InferencePools alone"
		}
	case "events":
		return "something goes wrong"
	}
	return ""
}

// TestRights compares what the roles of the mode's manifest grant with what was done
// while the suite ran: nothing more, nothing less.
func TestRights(t *testing.T) {
	if *auditLog == "" {
		t.Skip("-audit-log names the audit log of a run")
	}
	m := modes[flag.Lookup("mode").Value.String()]
	for _, a := range m.accounts {
		t.Run(a.name, func(t *testing.T) {
			granted, used := granted(t, m.manifest, a), used(t, *auditLog, a)
			if len(used) == 0 {
				t.Fatalf("%s has nothing of %s", *auditLog, a.user())
			}
			for _, r := range sorted(granted) {
				// A watch starts with a list where the API server can't stream one.
				if r.verb == "list" && used[right{r.group, r.resource, "watch"}] {
					continue
				}
				if !used[r] && rare(m, r) == "" {
					t.Errorf("a role grants %s, which nobody used", r)
				}
			}
		})
	}
}

func (r right) String() string {
	if r.group == "" {
		return r.verb + " " + r.resource
	}
	return r.verb + " " + r.resource + "." + r.group
}

// granted reads the roles of a manifest that are an account's.
func granted(t *testing.T, manifest string, a account) map[right]bool {
	t.Helper()
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]rbacv1.PolicyRule{} // by kind and name of a role
	var roles []string                        // of the account
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var o struct { // a role, or what binds one
			metav1.TypeMeta `json:",inline"`
			Metadata        metav1.ObjectMeta   `json:"metadata"`
			Rules           []rbacv1.PolicyRule `json:"rules"`
			RoleRef         rbacv1.RoleRef      `json:"roleRef"`
			Subjects        []rbacv1.Subject    `json:"subjects"`
		}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		switch o.Kind {
		case "ClusterRole", "Role":
			rules[o.Kind+" "+o.Metadata.Name] = o.Rules
		case "ClusterRoleBinding", "RoleBinding":
			for _, s := range o.Subjects {
				if (account{s.Namespace, s.Name}) == a {
					roles = append(roles, o.RoleRef.Kind+" "+o.RoleRef.Name)
				}
			}
		}
	}
	out := map[right]bool{}
	for _, role := range roles {
		for _, rule := range rules[role] {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						out[right{group, resource, verb}] = true
					}
				}
			}
		}
	}
	return out
}

// event is what matters of an audit event.
type event struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
}

// used reads what an account did. What it was refused is an error.
func used(t *testing.T, file string, a account) map[right]bool {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[right]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.User.Username != a.user() || e.ObjectRef == nil {
			continue
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		r := right{e.ObjectRef.APIGroup, resource, e.Verb}
		if s := e.ResponseStatus; s != nil && s.Code == http.StatusForbidden && !out[r] {
			t.Errorf("refused: %s %s/%s: %s", r, e.ObjectRef.Namespace, e.ObjectRef.Name, s.Message)
		}
		out[r] = true
		if s := e.ResponseStatus; s != nil && s.Code == http.StatusCreated {
			// What is applied for the first time is created, and must be allowed as such.
			out[right{r.group, r.resource, "create"}] = true
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func sorted(rights map[right]bool) []right {
	out := make([]right, 0, len(rights))
	for r := range rights {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b right) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.verb, b.verb))
	})
	return out
}
