package chart

import (
	"os"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAlerts protects alerts that never fire, since what they ask for has another name.
func TestAlerts(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(chart + "/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documented, err := os.ReadFile("../../docs/reference/admin.md")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(raw, &rules); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(gatehouse_\\w+)` \\|").FindAllSubmatch(documented, -1) {
		known[string(m[1])] = true
	}
	alerts := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			alerts++
			names := regexp.MustCompile(`gatehouse_\w+`).FindAllString(r.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%s asks for nothing of ours", r.Alert)
			}
			for _, name := range names {
				if !known[name] {
					t.Errorf("%s asks for %s, which is not in docs/reference/admin.md", r.Alert, name)
				}
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s doesn't say what it is and what to do", r.Alert)
			}
		}
	}
	if alerts == 0 {
		t.Error("no alerts")
	}
}
