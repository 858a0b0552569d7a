package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// otherYAML is how many blocks of YAML of each page of the guide are no manifests: settings of the chart, configuration, or
// parts of objects that stand on the page. All others are read and put through the pipeline.
var otherYAML = map[string]int{
	"auth.md": 4, "backends.md": 1, "blueprints.md": 4, "clusters.md": 2, "config-server.md": 3, "edge.md": 4, "extension-server.md": 2, "figures.md": 2, "ingress-nginx.md": 1,
	"install.md": 3, "own-proxies.md": 1, "rollouts.md": 1, "route-filters.md": 2, "tcp-udp-tls.md": 1, "tls.md": 1, "upgrade.md": 1,
}

// elsewhere are problems of blocks that refer to what stands in others.
var elsewhere = regexp.MustCompile(`does not exist; create it or correct targetRefs|No HTTPRoute of namespace default has the labels|there is no GatewayClass "public"`)

var (
	fences   = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	manifest = regexp.MustCompile(`(?m)^apiVersion: `)
)

// TestGuide protects that the manifests of the guide can be applied: no field is unknown, nothing is refused, and no block is
// left out of this in silence.
func TestGuide(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	for _, path := range pages {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var others []string
			blocks := fences.FindAllStringSubmatch(string(text), -1)
			if n := strings.Count(string(text), "```yaml"); n != len(blocks) {
				t.Errorf("the page has %d blocks of YAML, of which %d are found", n, len(blocks))
			}
			for i, block := range blocks {
				objects := block[1]
				if !manifest.MatchString(objects) {
					if objects = partOf(objects, name); objects == "" {
						others = append(others, block[1])
						continue
					}
				}
				f := &file{options: options{Experimental: true}}
				for _, problem := range view.Of(f.evaluated(t, objects)).Problems {
					if text := problem.Error(); !elsewhere.MatchString(text) {
						t.Errorf("block %d: %s\n%s", i+1, text, block[1])
					}
				}
			}
			if want := otherYAML[name]; len(others) != want {
				t.Errorf("%d blocks are no manifests, want %d:\n%s", len(others), want, strings.Join(others, "---\n"))
			}
		})
	}
	for name := range otherYAML {
		if !slices.Contains(pages, "../../docs/guide/"+name) {
			t.Errorf("there is no page %s", name)
		}
	}
}

// parts are the kinds of which pages show parts: the fields of a spec.
var parts = []struct{ kind, fields string }{
	{"TrafficPolicy", "request response backend"},
	{"RateLimitPolicy", "limits"},
	{"AuthPolicy", "authentication authorization"},
}

// partOf makes an object of a part of one; empty for other text.
func partOf(text, page string) string {
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil || len(fields) == 0 {
		return ""
	}
	for _, p := range parts {
		other := false
		for field := range fields {
			other = other || !slices.Contains(strings.Fields(p.fields), field)
		}
		if !other {
			return fmt.Sprintf("apiVersion: gatehouse.dev/v1alpha1\nkind: %s\nmetadata: {name: part}\nspec:\n"+
				"  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]\n%s", p.kind, regexp.MustCompile("(?m)^").ReplaceAllString(text, "  "))
		}
	}
	if _, ok := fields["spec"]; ok && len(fields) == 1 && page == "parameters.md" {
		return "apiVersion: gatehouse.dev/v1alpha1\nkind: GatewayParameters\nmetadata: {name: part}\n" + text
	}
	return ""
}
