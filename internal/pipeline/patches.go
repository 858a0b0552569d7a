package pipeline

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// patchedListener is a listener as its Gateway's parameters want it, with why some of their patches are not in it.
type patchedListener struct {
	resource *envoy.Resource
	wrong    []string
}

// declarePatches declares what parameters change in listeners. Whoever has no patches, which are nearly all, has the
// resource that was there.
func (p *Pipeline) declarePatches(plain flow.Table[ListenerAddress, *envoy.Resource]) {
	// By themselves, so that no change of a Gateway but one of its patches has them applied again.
	patches := flow.Map("patches", p.Graph.Gateways,
		func(_ *flow.Ctx, k object.Name, gw *topology.Gateway, emit func(object.Name, []envoy.Patch)) {
			if gw.Parameters == nil || gw.Parameters.Envoy == nil || len(gw.Parameters.Envoy.Patches) == 0 {
				return
			}
			var list []envoy.Patch
			for _, p := range gw.Parameters.Envoy.Patches {
				list = append(list, envoy.Patch{Name: p.Name, Operations: p.Operations.Raw})
			}
			emit(k, list)
		}, flow.Equal(func(a, b []envoy.Patch) bool { return reflect.DeepEqual(a, b) }))
	patched := flow.Map("patched-listeners", plain,
		func(c *flow.Ctx, k ListenerAddress, r *envoy.Resource, emit func(ListenerAddress, patchedListener)) {
			out := patchedListener{resource: r}
			list, _ := flow.Get(c, patches, k.Gateway)
			for i, patch := range list {
				if !patch.Fits(r) {
					continue
				}
				next, err := out.resource.Patched(patch)
				if err != nil {
					out.wrong = append(out.wrong, fmt.Sprintf("spec.envoy.patches[%d] has no effect on listener %s: %v", i, k.name(), err))
					continue
				}
				out.resource = next
			}
			emit(k, out)
		}, flow.Equal(func(a, b patchedListener) bool {
			return a.resource.Equal(b.resource) && a.resource.CarriesAlike(b.resource) && slices.Equal(a.wrong, b.wrong)
		}))
	p.Listeners = flow.Map("listener-resources", patched,
		func(_ *flow.Ctx, k ListenerAddress, l patchedListener, emit func(ListenerAddress, *envoy.Resource)) {
			emit(k, l.resource)
		})
	byGateway := flow.NewIndex(patched, func(k ListenerAddress, l patchedListener, yield func(object.Name)) { yield(k.Gateway) }, ListenerAddress.compare)
	p.patched = flow.Map("patched-gateways", patches,
		func(c *flow.Ctx, k object.Name, list []envoy.Patch, emit func(object.Name, metav1.Condition)) {
			var wrong []string
			hit := make([]bool, len(list))
			for _, l := range flow.Select(c, byGateway, k).All() {
				for i, patch := range list {
					hit[i] = hit[i] || patch.Fits(l.resource)
				}
				wrong = append(wrong, l.wrong...)
			}
			for i, patch := range list {
				if !hit[i] {
					wrong = append(wrong, fmt.Sprintf("spec.envoy.patches[%d] is for no listener of the Gateway: none has the name %s", i, patch.Name))
				}
			}
			emit(k, condition.GatewayPatched(wrong))
		}, flow.Equal(flow.Same[metav1.Condition]))
}
