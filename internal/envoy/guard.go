package envoy

import (
	"maps"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Guard identifies who may pass: what the filters that decide it are told by a piece of
// configuration, wherever in it that stands. It is zero for a piece that says nothing of it.
// A version of a host that a proxy has accepted must not stand in for one with another Guard:
// it might let requests pass that the new one is there to stop.
type Guard uint64

// guardsBy reports whether a filter decides who may pass.
func guardsBy(filter string) bool {
	return filter == accessSlot || strings.HasPrefix(filter, authPrefix)
}

// guardOf returns the guard of all these settings of filters.
func guardOf(settings ...map[string]*anypb.Any) Guard {
	var said map[uint64]bool // most pieces say nothing
	for _, s := range settings {
		for name, config := range s {
			if !guardsBy(name) {
				continue
			}
			d := xxhash.New()
			_, _ = d.WriteString(name)
			_, _ = d.Write(config.GetValue())
			if said == nil {
				said = map[uint64]bool{}
			}
			said[d.Sum64()] = true
		}
	}
	if said == nil {
		return 0
	}
	var sum Guard
	for _, one := range slices.Sorted(maps.Keys(said)) {
		sum = sum*31 + Guard(one)
	}
	return sum
}

// guardOfHost returns the guard of a host and its routes.
func guardOfHost(vh *routev3.VirtualHost) Guard {
	var settings []map[string]*anypb.Any
	if s := vh.GetTypedPerFilterConfig(); len(s) > 0 {
		settings = append(settings, s)
	}
	for _, r := range vh.GetRoutes() {
		if s := r.GetTypedPerFilterConfig(); len(s) > 0 {
			settings = append(settings, s)
		}
		for _, c := range r.GetRoute().GetWeightedClusters().GetClusters() {
			if s := c.GetTypedPerFilterConfig(); len(s) > 0 {
				settings = append(settings, s)
			}
		}
	}
	return guardOf(settings...)
}
