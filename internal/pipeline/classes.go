package pipeline

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareUsed declares which of our classes have a Gateway.
func (p *Pipeline) declareUsed() {
	named := flow.Keys("named-classes",
		func(_ object.Name, gw *gwv1.Gateway, yield func(string)) { yield(string(gw.Spec.GatewayClassName)) }, p.Inputs.Gateways)
	p.UsedClasses = flow.Map("used-classes", p.Graph.Classes,
		func(c *flow.Ctx, name string, _ *topology.Class, emit func(string, bool)) {
			_, used := flow.Get(c, named, name)
			emit(name, used)
		}, flow.Equal(flow.Same[bool]))
	flow.Watch(p.UsedClasses)
}
