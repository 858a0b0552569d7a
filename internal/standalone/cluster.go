package standalone

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
)

// RenderOptions say what files to render by the blueprints in them.
type RenderOptions struct {
	EvaluateOptions
	ControllerNamespace string
	// Live are the objects of the cluster that expressions may read.
	Live []*unstructured.Unstructured
}

// Render computes what files become in a cluster, where blueprints are in force.
func Render(ctx context.Context, opts RenderOptions) (*pipeline.Pipeline, error) {
	options := pipeline.Provisioned(pipeline.ControllerName, proxy.DefaultAuthorities, nil)
	options.ControllerNamespace = opts.ControllerNamespace
	options.Topology.Experimental = opts.Experimental
	options.NoProxies = true
	p, err := evaluate(ctx, opts.EvaluateOptions, options)
	if err != nil {
		return nil, err
	}
	kinds := p.ChildKinds()
	p.Update(func(tx *flow.Tx) {
		for kind := range kinds {
			p.SetScope(tx, kind, new(!clusterScoped[kind.GroupKind()]))
		}
		for _, o := range opts.Live {
			p.SetChild(tx, blueprint.RefOf(o), o)
		}
	})
	return p, nil
}

// clusterScoped are the kinds of Kubernetes whose objects are in no namespace and that a blueprint may
// make. Of others it isn't known without a cluster, and most are in one.
var clusterScoped = map[schema.GroupKind]bool{
	{Kind: "Namespace"}:        true,
	{Kind: "PersistentVolume"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                  true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                                true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:                 true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:                        true,
	{Group: "cert-manager.io", Kind: "ClusterIssuer"}:                                 true,
}
