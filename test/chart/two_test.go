package chart

import (
	"os"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestTwoInOneCluster protects those who follow the guide word for word: the two releases
// share no object, and no class, controllerName or Lease.
func TestTwoInOneCluster(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guide/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(guide), "### Two in one cluster\n")
	section, _, _ = strings.Cut(section, "\n## ")
	block := func(language string) string {
		t.Helper()
		found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(section)
		if !ok || found == nil {
			t.Fatalf("the guide's section has no block of %s", language)
		}
		return found[1]
	}
	install := regexp.MustCompile(`helm install (\S+) \S+ \\\n\s+--namespace (\S+) `).FindStringSubmatch(block("bash"))
	if install == nil {
		t.Fatalf("no helm install in\n%s", block("bash"))
	}
	second, err := helm("template", install[1], chart, "--no-hooks", "--namespace", install[2], "--values", write(t, []byte(block("yaml"))))
	if err != nil {
		t.Fatal(err)
	}
	taken := map[string]bool{}
	for _, name := range rendered(t, render(t, "--no-hooks", "--namespace", "gatehouse-system")) {
		taken[name] = true
	}
	for _, name := range rendered(t, second) {
		if taken[name] {
			t.Errorf("both have %s", name)
		}
	}
}

// rendered names the objects of a manifest.
func rendered(t *testing.T, manifest []byte) []string {
	t.Helper()
	var out []string
	for text := range strings.SplitSeq("\n"+string(manifest), "\n---") {
		o := metav1.PartialObjectMetadata{}
		if err := yaml.Unmarshal([]byte(strings.TrimSpace(text)), &o); err != nil {
			t.Fatal(err)
		}
		if o.Kind != "" {
			out = append(out, o.Kind+" "+o.Namespace+"/"+o.Name)
		}
	}
	return out
}
