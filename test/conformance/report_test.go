package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/pkg/features"
	"sigs.k8s.io/yaml"
)

// kept is where reports are kept, one folder for each version of the API.
const kept = "reports/*/gatehouse-dev-gatehouse"

// TestReports checks each report that is kept, and those in -report-dir: upstream would
// take it, each profile of its mode succeeded with nothing failed and nothing skipped, and
// no feature that has a test in the suite is left out where a mode is to have them all.
func TestReports(t *testing.T) {
	files, err := filepath.Glob(kept + "/*-report.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no reports are kept", err)
	}
	further, err := filepath.Glob(filepath.Join(*reportDir, "*-report.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, further...) {
		t.Run(strings.TrimSuffix(filepath.Base(file), "-report.yaml"), func(t *testing.T) {
			r := read(t, file)
			if err := r.Implementation.Validate(); err != nil {
				t.Error(err)
			}
			if want := reportName(r.GatewayAPIChannel, r.Implementation.Version, r.Mode); want != filepath.Base(file) {
				t.Errorf("the file should be named %s", want)
			}
			m, ok := modes[r.Mode]
			if !ok {
				t.Fatalf("there is no mode %q", r.Mode)
			}
			missing := m.names()
			for _, p := range r.ProfileReports {
				check(t, m, p, r.GatewayAPIChannel)
				delete(missing, p.Name)
			}
			for name := range missing {
				t.Errorf("%s is not tested", name)
			}
			if isKept, _ := filepath.Match(kept, filepath.Dir(file)); isKept && !strings.Contains(readme(t, file), filepath.Base(file)) {
				t.Error("README.md beside it has no line about it")
			}
		})
	}
}

// check says what of a profile is not as it should be.
func check(t *testing.T, m mode, p confv1.ProfileReport, channel string) {
	t.Helper()
	levels := map[string]confv1.Status{"core": p.Core}
	switch {
	case len(m.features) > 0:
	case p.Extended == nil:
		t.Errorf("%s: nothing but the core is tested", p.Name)
	default:
		levels["extended"] = p.Extended.Status
		for _, name := range p.Extended.UnsupportedFeatures {
			if tested(features.FeatureName(name), channel) {
				t.Errorf("%s: feature %s is not supported", p.Name, name)
			}
		}
	}
	for level, s := range levels {
		if s.Result != confv1.Success || s.Statistics.Passed == 0 || s.Statistics.Failed != 0 || s.Statistics.Skipped != 0 {
			t.Errorf("%s, %s: %s; %d passed, %d failed %v, %d skipped %v", p.Name, level, s.Result,
				s.Statistics.Passed, s.Statistics.Failed, s.FailedTests, s.Statistics.Skipped, s.SkippedTests)
		}
	}
}

// tested says whether the suite has a test for a feature of the channel.
func tested(name features.FeatureName, channel string) bool {
	if channel == "standard" && features.GetFeature(name).Channel != features.FeatureChannelStandard {
		return false
	}
	for _, test := range tests.ConformanceTests {
		for _, f := range test.Features {
			if f == name {
				return true
			}
		}
	}
	return false
}

func read(t *testing.T, file string) confv1.ConformanceReport {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r confv1.ConformanceReport
	if err := yaml.UnmarshalStrict(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func readme(t *testing.T, report string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(report), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
