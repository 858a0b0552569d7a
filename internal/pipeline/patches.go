package pipeline

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Patched is a listener, a cluster or a virtual host that patches are for: as it was, and what has become of it. Each has Before and
// After of its own, of resources or of hosts.
type Patched struct {
	Type                  envoy.Type // Routes for a virtual host
	Name                  string
	Before, After         *envoy.Resource
	HostBefore, HostAfter *envoy.Part
	// By are the patches that have changed it, and wrong is why others have not.
	By    []int
	fits  []int
	wrong []string
}

func (p *Patched) equal(o *Patched) bool {
	return p == o || p != nil && o != nil && reflect.DeepEqual(p, o) // of few
}

// patched returns what patches make of something; nil where none is for it.
func patched(list []envoy.Patch, of envoy.Type, name, words string, offer func() (*envoy.Offer, error)) (out *Patched, now *envoy.Offer) {
	for i, patch := range list {
		if !patch.Fits(of, name) {
			continue
		}
		if out == nil {
			out = &Patched{Type: of, Name: name}
		}
		out.fits = append(out.fits, i)
		var err error
		if now == nil {
			now, err = offer()
		} else {
			now, err = now.Again()
		}
		if err == nil {
			err = now.TakePatch(patch.Operations)
		}
		if err != nil {
			out.wrong = append(out.wrong, fmt.Sprintf("spec.envoy.patches[%d] has no effect on %s %s: %v", i, words, name, err))
			continue
		}
		out.By = append(out.By, i)
	}
	return out, now
}

// patchedResource is patched of a resource, which it returns as it is to be.
func patchedResource(list []envoy.Patch, r *envoy.Resource) (*Patched, *envoy.Resource) {
	if len(list) == 0 || r == nil {
		return nil, r
	}
	out, now := patched(list, r.Type, r.Name, r.Type.String(), func() (*envoy.Offer, error) { return envoy.OfferResource(r) })
	if out == nil {
		return nil, r
	}
	out.Before, out.After = r, r
	if now != nil {
		out.After = now.Resource()
	}
	return out, out.After
}

// patchedHost is patched of a virtual host.
func patchedHost(list []envoy.Patch, h *envoy.Part) (*Patched, *envoy.Part) {
	if len(list) == 0 {
		return nil, h
	}
	out, now := patched(list, envoy.Routes, h.Name, "virtual host", func() (*envoy.Offer, error) { return envoy.OfferHost(h) })
	if out == nil {
		return nil, h
	}
	out.HostBefore, out.HostAfter = h, h
	if now != nil {
		out.HostAfter = now.Host()
	}
	return out, out.HostAfter
}

// patchedListener is a listener as its Gateway's parameters want it.
type patchedListener struct {
	resource *envoy.Resource
	patched  *Patched // nil for nearly all
}

// patchedBundle is a bundle of hosts likewise.
type patchedBundle struct {
	*envoy.Bundle
	patched []*Patched // nil for nearly all
}

func (b patchedBundle) equal(o patchedBundle) bool {
	return b.Bundle.Equal(o.Bundle) && slices.EqualFunc(b.patched, o.patched, (*Patched).equal)
}

// declarePatches declares what parameters change in what proxies are sent. By themselves, so that no change of a Gateway but one of its
// patches has them applied again.
func (p *Pipeline) declarePatches() {
	p.patches = flow.Map("patches", p.Graph.Fleets,
		func(_ *flow.Ctx, k object.Name, gw *topology.Gateway, emit func(object.Name, []envoy.Patch)) {
			if gw.Parameters == nil || gw.Parameters.Envoy == nil || len(gw.Parameters.Envoy.Patches) == 0 {
				return
			}
			var list []envoy.Patch
			for _, p := range gw.Parameters.Envoy.Patches {
				list = append(list, envoy.Patch{Type: envoy.PatchTypes[string(p.Type)], Name: p.Name, Operations: p.Operations.Raw})
			}
			emit(k, list)
		}, flow.Equal(func(a, b []envoy.Patch) bool { return reflect.DeepEqual(a, b) }))
}

// patchBundle applies patches to the hosts of a bundle.
func (p *Pipeline) patchBundle(c *flow.Ctx, k bundleKey, parts []*envoy.Part) patchedBundle {
	list, _ := flow.Get(c, p.patches, k.Gateway())
	var all []*Patched
	for i := range parts {
		var of *Patched
		if of, parts[i] = patchedHost(list, parts[i]); of != nil {
			all = append(all, of)
		}
	}
	return patchedBundle{envoy.NewBundle(parts), all}
}

// patchMember applies patches to a cluster.
func (p *Pipeline) patchMember(c *flow.Ctx, k BackendKey, m Member) Member {
	list, ok := flow.Get(c, p.patches, k.Gateway)
	if !ok {
		return m
	}
	of, cluster := patchedResource(list, m.Cluster)
	if of == nil {
		return m
	}
	odd := m.oddities()
	odd.patched = of
	m.Cluster, m.odd = cluster, &odd
	return m
}

// declarePatchedListeners declares listeners. Whoever has no patches, which are nearly all, has the resource that was there.
func (p *Pipeline) declarePatchedListeners(plain flow.Table[ListenerAddress, *envoy.Resource]) {
	listeners := flow.Map("patched-listeners", plain,
		func(c *flow.Ctx, k ListenerAddress, r *envoy.Resource, emit func(ListenerAddress, patchedListener)) {
			list, _ := flow.Get(c, p.patches, k.Gateway)
			of, now := patchedResource(list, r)
			emit(k, patchedListener{now, of})
		}, flow.Equal(func(a, b patchedListener) bool {
			return a.resource.Equal(b.resource) && a.resource.CarriesAlike(b.resource) && a.patched.equal(b.patched)
		}))
	p.Listeners = flow.Map("listener-resources", listeners,
		func(_ *flow.Ctx, k ListenerAddress, l patchedListener, emit func(ListenerAddress, *envoy.Resource)) {
			emit(k, l.resource)
		})
	p.patchedListeners = flow.NewIndex(listeners, func(k ListenerAddress, l patchedListener, yield func(object.Name)) {
		if l.patched != nil {
			yield(k.Gateway)
		}
	}, ListenerAddress.compare)
}

// declarePatchedGateways declares what Gateways with patches say of these.
func (p *Pipeline) declarePatchedGateways() {
	p.patchedMembers = flow.NewIndex(p.Members, func(k BackendKey, m Member, yield func(object.Name)) {
		if m.oddities().patched != nil {
			yield(k.Gateway)
		}
	}, BackendKey.compare)
	p.patched = flow.Map("patched-gateways", p.patches,
		func(c *flow.Ctx, k object.Name, list []envoy.Patch, emit func(object.Name, metav1.Condition)) {
			wrong := map[string]bool{}
			hit := make([]bool, len(list))
			p.PatchedOf(c, k, func(of *Patched) {
				for _, i := range of.fits {
					hit[i] = true
				}
				for _, text := range of.wrong {
					wrong[text] = true
				}
			})
			for i, patch := range list {
				if !hit[i] {
					wrong[fmt.Sprintf("spec.envoy.patches[%d] is for no %s of the Gateway: none has the name %s", i, patchWords[patch.Type], patch.Name)] = true
				}
			}
			emit(k, condition.GatewayPatched(slices.Sorted(maps.Keys(wrong))))
		}, flow.Equal(flow.Same[metav1.Condition]))
}

var patchWords = map[envoy.Type]string{envoy.Listeners: "listener", envoy.Clusters: "cluster", envoy.Routes: "virtual host"}

// PatchedOf yields what a Gateway's patches are for, and what has become of it.
func (p *Pipeline) PatchedOf(c *flow.Ctx, gateway object.Name, yield func(*Patched)) {
	for _, l := range flow.Select(c, p.patchedListeners, gateway).All() {
		yield(l.patched)
	}
	for _, m := range flow.Select(c, p.patchedMembers, gateway).All() {
		yield(m.odd.patched)
	}
	for _, b := range flow.Select(c, p.patchedBundles, gateway).All() {
		for _, of := range b.patched {
			yield(of)
		}
	}
}
