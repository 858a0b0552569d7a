package pipeline

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// standalone are the options of a pipeline whose Gateways serve on this host.
var standalone = Options{
	Topology: topology.Options{ControllerName: "x", ImplicitClass: StandaloneClass}, Addresses: []string{"127.0.0.1"},
}

// edgeGateway returns the Gateway default/edge.
func edgeGateway(listeners ...gwv1.Listener) *gwv1.Gateway {
	gw := &gwv1.Gateway{}
	gw.Namespace, gw.Name = "default", "edge"
	gw.Spec.GatewayClassName = StandaloneClass
	gw.Spec.Listeners = listeners
	return gw
}
