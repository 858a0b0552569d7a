package envoy

import (
	"reflect"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filterchainv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/filter_chain/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// A setting of TrafficPolicies that needs filters has a place of its own in the chain, which hosts and
// routes fill. What the levels around a route have put there runs together with what the route puts
// there, but a filter takes the place of one of its name: see accessSlot.

// trafficSlot is the place of a setting.
type trafficSlot struct {
	name string
	// setting is the part of what is said that its filters depend on; nil where it isn't said.
	setting func(*ir.Traffic) any
	filters []trafficFilter
}

// trafficFilter is a filter in the place of a setting.
type trafficFilter struct {
	name string
	make func(*ir.Traffic) (message, error) // nil where it isn't needed
}

// idle does nothing, in place of a filter of a level around. It is of another type than that: a compressor that
// does nothing could still be the one that the client likes best.
var idle = &headermutationv3.HeaderMutation{Mutations: &headermutationv3.Mutations{}}

// trafficSlots are the places of settings, see allFilters for their order.
var trafficSlots = []*trafficSlot{&answerHeadersSlot, &compressionSlot, &errorPagesSlot, &bodySizeSlot, &bufferSlot, &faultSlot}

// filter is the place in the chain.
func (s *trafficSlot) filter() *hcmv3.HttpFilter {
	return optional(s.name, &filterchainv3.FilterChainConfig{})
}

// enableTraffic fills the places of settings for a level; outer is what is said around it.
func enableTraffic(out *map[string]*anypb.Any, t, outer *ir.Traffic) error {
	if outer == nil {
		outer = &ir.Traffic{}
	}
	for _, s := range trafficSlots {
		if reflect.DeepEqual(s.setting(t), s.setting(outer)) {
			continue
		}
		chain, needed := &filterchainv3.FilterChain{}, false
		for _, f := range s.filters {
			m, err := f.make(t)
			if err != nil {
				return err
			}
			if m != nil {
				needed = true
			} else if around, _ := f.make(outer); around != nil {
				m = idle
			} else {
				continue
			}
			config, err := pack(m)
			if err != nil {
				return err
			}
			chain.Filters = append(chain.Filters, &corev3.TypedExtensionConfig{Name: f.name, TypedConfig: config})
		}
		switch {
		case needed:
			if err := tell(out, s.name, &filterchainv3.FilterChainConfigPerRoute{FilterChain: chain}); err != nil {
				return err
			}
		case len(chain.Filters) > 0: // all do nothing
			put(out, s.name, disabled)
		}
	}
	return nil
}

// setTraffic gives routes what settings say of them that needs no filter.
func setTraffic(routes []*routev3.Route, t *ir.Traffic) {
	if t == nil {
		return
	}
	for _, r := range routes {
		if action := r.GetRoute(); action != nil {
			action.HashPolicy = hashPolicy(t.LoadBalancing)
		}
	}
}
