package translate_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

// TestGolden translates the routes of each file in testdata. A file has
//
//   - routes.yaml: HTTPRoutes. References to a Service whose name begins with
//     "missing" can't be used, all others can.
//   - hosts.yaml, optional: the hosts on which all the routes meet.
//   - rules.yaml, expected unless there are hosts: what each route says.
//   - host-N.yaml, expected: what the hosts become.
//   - problems.yaml, expected where there are any.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := &txtar.Archive{Comment: archive.Comment}
			for _, f := range archive.Files {
				if f.Name == "routes.yaml" || f.Name == "hosts.yaml" {
					got.Files = append(got.Files, f)
				}
			}
			got.Files = append(got.Files, outcome(t, archive)...)
			text := txtar.Format(got)
			if *update {
				if err := os.WriteFile(file, text, 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(text)); diff != "" {
				t.Errorf("differs from the expectation (-want +got); -update rewrites it:\n%s", diff)
			}
		})
	}
}

// hostCase is an entry of hosts.yaml.
type hostCase struct {
	Domain string `json:"domain"`
	Port   uint16 `json:"port"`
	HTTPS  bool   `json:"https"`
	Offset int    `json:"offset"`
	// Hostnames are the routes' own, by route; a route that isn't listed has none.
	Hostnames map[string][]string `json:"hostnames"`
}

func outcome(t *testing.T, archive *txtar.Archive) []txtar.File {
	t.Helper()
	var out []txtar.File
	var problems []string
	var entries []translate.HostEntry
	for _, route := range routes(t, section(archive, "routes.yaml")) {
		rules := translate.Route(node(route))
		for _, p := range rules.Problems {
			problems = append(problems, fmt.Sprintf("%s rule %d: %s %s", route.Name, p.Rule, p.Condition.Type, p.Condition.Reason), "    "+p.Condition.Message)
		}
		entries = append(entries, translate.HostEntry{
			Route:   object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: route.Namespace, Name: route.Name}},
			Created: route.CreationTimestamp.Time,
			Rules:   rules.Rules,
		})
	}
	hosts := section(archive, "hosts.yaml")
	if hosts == nil {
		var rules []*ir.Rule
		for _, e := range entries {
			rules = append(rules, e.Rules...)
		}
		out = append(out, txtar.File{Name: "rules.yaml", Data: printed(t, rules)})
	} else {
		var cases []hostCase
		if err := yaml.UnmarshalStrict(hosts, &cases); err != nil {
			t.Fatal(err)
		}
		for i, c := range cases {
			in := translate.HostInput{Domain: c.Domain, Port: c.Port, HTTPS: c.HTTPS, Offset: c.Offset}
			for _, e := range entries {
				hostnames := c.Hostnames[e.Route.Name.Name]
				if hostnames == nil {
					hostnames = []string{""}
				}
				for _, e.Hostname = range hostnames {
					in.Entries = append(in.Entries, e)
				}
			}
			out = append(out, txtar.File{Name: fmt.Sprintf("host-%d.yaml", i), Data: printed(t, translate.Host(in))})
		}
	}
	if problems != nil {
		out = append(out, txtar.File{Name: "problems.yaml", Data: []byte(strings.Join(problems, "\n") + "\n")})
	}
	return out
}

func section(archive *txtar.Archive, name string) []byte {
	for _, f := range archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func routes(t *testing.T, text []byte) []*gwv1.HTTPRoute {
	t.Helper()
	var out []*gwv1.HTTPRoute
	for doc := range bytes.SplitSeq(text, []byte("---\n")) {
		route := &gwv1.HTTPRoute{}
		if err := yaml.UnmarshalStrict(doc, route); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if route.Namespace == "" {
			route.Namespace = "default"
		}
		out = append(out, route)
	}
	return out
}

// node resolves a route as the topology would.
func node(route *gwv1.HTTPRoute) *topology.Route {
	n := &topology.Route{
		Key:    object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: route.Namespace, Name: route.Name}},
		Object: route,
	}
	for i := range route.Spec.Rules {
		var rule topology.RouteRule
		for _, b := range route.Spec.Rules[i].BackendRefs {
			rule.Backends = append(rule.Backends, resolve(route.Namespace, b.BackendObjectReference))
		}
		for _, f := range route.Spec.Rules[i].Filters {
			if f.RequestMirror != nil {
				rule.Mirrors = append(rule.Mirrors, resolve(route.Namespace, f.RequestMirror.BackendRef))
			}
		}
		n.Rules = append(n.Rules, rule)
	}
	return n
}

func resolve(namespace string, ref gwv1.BackendObjectReference) topology.BackendRef {
	if strings.HasPrefix(string(ref.Name), "missing") {
		c := condition.BackendNotFound("backendRefs", condition.Missing{Kind: "Service", Namespace: namespace, Name: string(ref.Name)})
		return topology.BackendRef{Problem: &c}
	}
	if ref.Namespace != nil {
		namespace = string(*ref.Namespace)
	}
	return topology.BackendRef{Backend: ir.Backend{
		Object:   object.Key{Kind: kind.Service, Name: object.Name{Namespace: namespace, Name: string(ref.Name)}},
		Port:     int32(*ref.Port),
		Protocol: ir.HTTP1,
	}.Key()}
}

func printed(t *testing.T, v any) []byte {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// at is a creation time some seconds after the first one.
func at(seconds int) metav1.Time { return metav1.NewTime(time.Unix(1_800_000_000+int64(seconds), 0)) }
