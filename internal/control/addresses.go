package control

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// locate fills in where a Gateway can be reached, and what is known of why it can't.
func (p *Pipeline) locate(c *flow.Ctx, gw *topology.Gateway, in *status.GatewayInput) {
	if !gw.Provisioned {
		in.BindAddresses = p.opts.Addresses
		return
	}
	state, _ := flow.Get(c, p.fleetStates, gw.Name)
	in.FleetProblem, in.NoProxy = state.Problem, state.Waiting
	name := ir.Name{Namespace: gw.Name.Namespace, Name: infra.Name(gw.Name, gw.Class)}
	s, ok := flow.Get(c, p.inputs.Services, name)
	if !ok || !belongs(s, gw.Name) {
		in.NoAddress = condition.AddressNoService(name.String(), state.Problem)
		return
	}
	in.BindAddresses, in.ClusterAddresses = serviceAddresses(s)
	if len(in.BindAddresses) == 0 {
		in.NoAddress = condition.AddressServicePending(name.String(), string(s.Spec.Type))
	}
}

// serviceAddresses are where clients reach a Service from outside of the cluster, if
// its type lets them, and its ClusterIPs.
func serviceAddresses(s *corev1.Service) (addresses, cluster []string) {
	cluster = slices.DeleteFunc(slices.Clone(s.Spec.ClusterIPs), func(ip string) bool { return ip == corev1.ClusterIPNone || ip == "" })
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return slices.Concat(cluster, s.Spec.ExternalIPs), cluster
	}
	for _, i := range s.Status.LoadBalancer.Ingress {
		if i.IP != "" {
			addresses = append(addresses, i.IP)
		}
		if i.Hostname != "" {
			addresses = append(addresses, i.Hostname)
		}
	}
	return append(addresses, s.Spec.ExternalIPs...), cluster
}

// belongs reports whether a Service is of a Gateway's fleet, and not somebody else's
// of the same name.
func belongs(s *corev1.Service, gateway ir.Name) bool {
	of, ok := infra.GatewayOf(s)
	return ok && of == gateway
}
