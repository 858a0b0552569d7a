package provisionermode

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwfeatures "sigs.k8s.io/gateway-api/pkg/features"

	"github.com/gatehouse-dev/gatehouse/internal/features"
)

// supportedBy returns the features of the class: what `gatehouse static-mode` does with the
// kinds that the cluster serves at the start.
func supportedBy(m meta.RESTMapper, channel gwfeatures.FeatureChannel) ([]gwv1.SupportedFeature, error) {
	all := features.Status(channel, features.Pod)
	bundles := schema.GroupKind{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}
	_, err := m.RESTMapping(bundles, "v1", "v1beta1")
	if meta.IsNoMatchError(err) {
		return slices.DeleteFunc(all, func(f gwv1.SupportedFeature) bool {
			return f.Name == gwv1.FeatureName(gwfeatures.SupportClusterTrustBundle)
		}), nil
	}
	if err != nil {
		return nil, fmt.Errorf("whether the cluster serves %s: %w", bundles, err)
	}
	return all, nil
}
