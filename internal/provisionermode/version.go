package provisionermode

import (
	"context"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// version judges the cluster's definitions of the Gateway API.
func (p *provisioner) version(ctx context.Context) (topology.Version, error) {
	definitions, err := kube.Definitions(ctx, p.client)
	if err != nil {
		return topology.Version{}, err
	}
	v, _ := topology.VersionOf(slices.Values(definitions))
	return v, nil
}
