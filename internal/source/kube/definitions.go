package kube

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// DefinitionKind is the kind whose objects define kinds.
var DefinitionKind = kind.All.Of(kind.Definition).New().GetObjectKind().GroupVersionKind()

// Definitions returns the metadata of the cluster's definitions of the Gateway API.
func Definitions(ctx context.Context, r client.Reader) ([]*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(DefinitionKind.GroupVersion().WithKind(DefinitionKind.Kind + "List"))
	if err := r.List(ctx, list); err != nil {
		return nil, fmt.Errorf("the Gateway API's definitions: %w", err)
	}
	var out []*metav1.PartialObjectMetadata
	for i := range list.Items {
		if OfGatewayAPI(&list.Items[i]) {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// OfGatewayAPI reports whether a definition is one of the Gateway API's.
func OfGatewayAPI(o client.Object) bool {
	_, group, _ := strings.Cut(o.GetName(), ".")
	return group == kind.GatewayAPI || group == kind.Experimental
}
