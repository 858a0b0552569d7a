package topology

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"
)

// What definitions say of their version decides how far they can be used.
func TestVersionOf(t *testing.T) {
	const gateways, xmeshes = "gateways.gateway.networking.k8s.io", "xmeshes.gateway.networking.x-k8s.io"
	for _, test := range []struct {
		name     string
		versions map[string]string
		want     string // status of SupportedVersion, and of Accepted where it is decided
		says     string
	}{
		{"none", nil, "", ""},
		{"ours", map[string]string{gateways: "v1.7.0"}, "True", "v1.7.0"},
		{"ours, patched", map[string]string{gateways: "v1.7.9"}, "True", ""},
		{"ours, early", map[string]string{gateways: "v1.7.0-rc.1"}, "True", ""},
		{"older", map[string]string{gateways: "v1.6.2"}, "False", "v1.6.2 (gateways"},
		{"newer", map[string]string{gateways: "v1.10.0"}, "False", "v1.10.0"},
		{"one of two", map[string]string{gateways: "v1.7.0", "httproutes.gateway.networking.k8s.io": "v1.5.0"}, "False", "v1.5.0 (httproutes"},
		{"next", map[string]string{gateways: "v2.0.0"}, "False False", "v2.0.0"},
		{"before the first", map[string]string{gateways: "v0.8.1"}, "False False", "v0.8.1"},
		{"unknown", map[string]string{gateways: ""}, "False False", "no version"},
		{"nonsense", map[string]string{gateways: "v1.7"}, "False False", "v1.7"},
		{"of others", map[string]string{gateways: "v1.7.0", xmeshes: "v2.0.0"}, "False", "v2.0.0 (xmeshes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var list []*metav1.PartialObjectMetadata
			for _, name := range slices.Sorted(maps.Keys(test.versions)) {
				d := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
				if v := test.versions[name]; v != "" {
					d.Annotations = map[string]string{consts.BundleVersionAnnotation: v}
				}
				list = append(list, d)
			}
			v, ok := VersionOf(slices.Values(list))
			got := strings.TrimSpace(string(v.Supported.Status) + " " + string(v.Refused.Status))
			if ok != (test.want != "") || got != test.want || !strings.Contains(v.Supported.Message, test.says) {
				t.Errorf("%q, %v: %s", got, ok, v.Supported.Message)
			}
		})
	}
}
