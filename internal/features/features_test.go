package features_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"

	ours "github.com/gatehouse-dev/gatehouse/internal/features"
)

// TestListIsComplete protects against a feature of the API that nobody has looked
// at, and against one that is told twice.
func TestListIsComplete(t *testing.T) {
	told := map[features.FeatureName]int{}
	for _, s := range ours.List {
		for _, r := range s.Rows {
			for _, name := range r.Features {
				told[name]++
			}
		}
	}
	for _, f := range features.AllFeatures.UnsortedList() {
		if mesh := strings.HasPrefix(string(f.Name), "Mesh"); mesh != (told[f.Name] == 0) || told[f.Name] > 1 {
			t.Errorf("%s is told %d times", f.Name, told[f.Name])
		}
		delete(told, f.Name)
	}
	for name := range told {
		t.Errorf("%s is no feature of the Gateway API", name)
	}
}

// TestCasesExist protects against a claim whose proof is gone.
func TestCasesExist(t *testing.T) {
	tests := map[string]bool{}
	var files []string
	for _, dir := range []string{"../../test/e2e", "../infra", "../cluster", "../pipeline"} {
		found, err := filepath.Glob(dir + "/*_test.go")
		if err != nil || len(found) == 0 {
			t.Fatal("no tests found in", dir, err)
		}
		files = append(files, found...)
	}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
	}
	for _, s := range ours.List {
		for _, r := range s.Rows {
			for _, name := range r.Cases {
				if _, err := os.Stat("../../test/e2e/testdata/" + name + ".txtar"); err != nil && !tests[name] {
					t.Errorf("%s: there is no case %s", s.Title, name)
				}
			}
		}
	}
}

// TestStatus protects the limits of GatewayClass status.
func TestStatus(t *testing.T) {
	list := ours.Status(ours.Experimental, ours.Fleets)
	if len(list) > 64 {
		t.Errorf("%d features, and the API takes 64", len(list))
	}
	if !slices.IsSortedFunc(list, func(a, b gwv1.SupportedFeature) int { return strings.Compare(string(a.Name), string(b.Name)) }) {
		t.Error("not sorted")
	}
}

// TestStatusOfChannels protects the standard channel from features whose fields it
// doesn't have.
func TestStatusOfChannels(t *testing.T) {
	all, standard := ours.Status(ours.Experimental, ours.Fleets), ours.Status(ours.Standard, ours.Fleets)
	for _, f := range standard {
		if !slices.Contains(all, f) {
			t.Errorf("%s is in the standard channel only", f.Name)
		}
	}
	for name, want := range map[features.FeatureName]bool{
		features.SupportHTTPRoute: true, features.SupportHTTPRouteDestinationPortMatching: true, features.SupportClusterTrustBundle: false,
	} {
		if got := slices.Contains(standard, gwv1.SupportedFeature{Name: gwv1.FeatureName(name)}); got != want {
			t.Errorf("%s in the standard channel: %v", name, got)
		}
	}
}

// TestStatusOfModes protects each mode from features that it can't have: where nobody
// makes anything for a Gateway there is nothing to label, and an address that a Gateway
// asks for can't be had.
func TestStatusOfModes(t *testing.T) {
	for name, modes := range map[features.FeatureName][]ours.Mode{
		features.SupportGateway:                          {ours.Host, ours.Fleets, ours.Unmanaged, ours.Pod},
		features.SupportGatewayStaticAddresses:           {ours.Host, ours.Fleets},
		features.SupportGatewayInfrastructure:            {ours.Fleets},
		features.SupportGatewayAddressRoutabilityCluster: {ours.Fleets},
	} {
		for _, mode := range []ours.Mode{ours.Host, ours.Fleets, ours.Unmanaged, ours.Pod} {
			claimed := slices.Contains(ours.Status(ours.Experimental, mode), gwv1.SupportedFeature{Name: gwv1.FeatureName(name)})
			if claimed != slices.Contains(modes, mode) {
				t.Errorf("%s in mode %d: %v", name, mode, claimed)
			}
		}
	}
}

// TestDocument keeps the document and the list together.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/features.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != ours.Markdown() {
		t.Error("docs/reference/features.md is not what the list says; run make generate")
	}
}
