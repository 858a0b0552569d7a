package control

import (
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareXBackendStatus declares what people are told of XBackends.
func (p *Pipeline) declareXBackendStatus() {
	p.xBackendStatus = flow.Map("xbackend-status", p.graph.XBackends,
		func(c *flow.Ctx, k object.Name, node *topology.XBackend, emit func(object.Name, *gwxv1alpha1.BackendStatus)) {
			ancestors, _ := flow.Get(c, p.graph.XBackendAncestors, k)
			s := status.XBackend(p.opts.Topology.ControllerName, node, ancestors)
			emit(k, &s)
		})
}

func xBackendItem(_ *flow.Ctx, node *topology.XBackend, s *gwxv1alpha1.BackendStatus) *Item {
	out := item("XBackend", node.Name.Namespace, node.Name.Name, node.Object.Generation, s)
	out.Summary = xBackendSummary(s)
	if node.Hostname != "" {
		out.Summary.Hosts = []string{node.Hostname}
	}
	return out
}

func xBackendSummary(s *gwxv1alpha1.BackendStatus) Summary {
	if len(s.Ancestors) == 0 {
		return Summary{State: unused, OK: true, Message: "no route of a Gateway refers to the backend"}
	}
	// What is wrong with a backend is the same for all Gateways.
	return summarize("Accepted", s.Ancestors[0].Conditions)
}

func xBackendConditions(s *gwxv1alpha1.BackendStatus) conditions {
	out := conditions{}
	for i := range s.Ancestors {
		out["ancestor "+parentPath(s.Ancestors[i].AncestorRef)] = s.Ancestors[i].Conditions
	}
	return out
}
