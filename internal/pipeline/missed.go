package pipeline

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// NoteMissed has Missed know what is referred to from now on. Whoever calls it calls Missed after each transaction.
func (p *Pipeline) NoteMissed() {
	p.Inputs.Services.NoteMissed()
	p.Inputs.SlicesByBackend.NoteMissed()
}

// Missed returns the Services that something has begun to refer to since the last call and that aren't there,
// or have no EndpointSlice. It costs nothing where all are.
func (p *Pipeline) Missed() []object.Name {
	missed := p.Inputs.Services.Missed()
	for _, k := range p.Inputs.SlicesByBackend.Missed() {
		if k.Kind == kind.Service {
			missed = append(missed, k.Name)
		}
	}
	return missed
}

// Lacking reports whether a Service isn't there, or has no EndpointSlice although it should.
func (p *Pipeline) Lacking(c *flow.Ctx, service object.Name) bool {
	s, ok := flow.Get(c, p.Inputs.Services, service)
	if !ok {
		return true
	}
	of := object.Key{Kind: kind.Service, Name: service}
	return s.Spec.Type != corev1.ServiceTypeExternalName && flow.Select(c, p.Inputs.SlicesByBackend, of).Len() == 0
}
