package conformance

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/gateway-api/conformance"
	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/utils/flags"
	"sigs.k8s.io/gateway-api/pkg/consts"
)

// reportDir, when set, gets the report, named as upstream wants it.
var reportDir = flag.String("report-dir", "", "Folder for the report, which is named by channel, version and mode.")

// TestConformance runs the suite. Each of the suite's own flags works and wins over
// what is set here; -kubeconfig and KUBECONFIG name the cluster.
func TestConformance(t *testing.T) {
	o := conformance.DefaultOptions(t)
	m, ok := modes[o.Mode]
	if !ok {
		t.Fatalf("-mode: there is no mode %q", o.Mode)
	}
	if o.GatewayClassName == flags.DefaultGatewayClassName {
		o.GatewayClassName = m.class
	}
	if len(o.ConformanceProfiles) == 0 {
		o.ConformanceProfiles = m.profiles
	}
	if len(o.SupportedFeatures) == 0 {
		o.SupportedFeatures = m.features
	}
	// A namespace with fleets goes when their proxies have ended, and Kubernetes looks
	// at that only after half of the time that they are granted.
	o.TimeoutConfig.DeleteTimeout = max(o.TimeoutConfig.DeleteTimeout, 2*time.Minute)
	o.Implementation = implementation(o.Implementation)
	if *reportDir != "" && o.ReportOutputPath == "" && o.RunTest == "" {
		if err := os.MkdirAll(*reportDir, 0o750); err != nil {
			t.Fatal(err)
		}
		o.ReportOutputPath = filepath.Join(*reportDir, reportName(channel(t, o.Client), o.Implementation.Version, o.Mode))
	}
	conformance.RunConformanceWithOptions(t, o)
}

// implementation says who we are, except for what flags say.
func implementation(i confv1.Implementation) confv1.Implementation {
	i.Organization = cmp.Or(i.Organization, "gatehouse-dev")
	i.Project = cmp.Or(i.Project, "gatehouse")
	i.URL = cmp.Or(i.URL, "https://github.com/gatehouse-dev/gatehouse")
	i.Version = cmp.Or(i.Version, os.Getenv("GATEHOUSE_VERSION"), "v0.0.0")
	if len(i.Contact) == 0 {
		i.Contact = []string{"https://github.com/gatehouse-dev/gatehouse/issues"}
	}
	return i
}

// channel returns the channel of the cluster's Gateway API.
func channel(t *testing.T, c client.Client) string {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "gateways.gateway.networking.k8s.io"}, crd); err != nil {
		t.Fatalf("the Gateway API is not installed: %v", err)
	}
	return crd.Annotations[consts.ChannelAnnotation]
}

// reportName is upstream's pattern for the names of reports.
func reportName(channel, version, mode string) string {
	return channel + "-" + version + "-" + mode + "-report.yaml"
}
