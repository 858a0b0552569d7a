package pipeline

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// RefusedObjects names what a refused resource of a Gateway is made of, as "HTTPRoute shop/web":
// the routes, the listener, or the Gateway where it belongs to no object alone.
func (p *Pipeline) RefusedObjects(gateway object.Name, r xds.Rejected) (named []string) {
	p.Engine.View(func(c *flow.Ctx) {
		if r.Type == envoy.Listeners {
			for k, l := range flow.All(c, p.Listeners) {
				if k.Gateway == gateway && l.Name == r.Name {
					named = append(named, "Gateway "+gateway.String()+" listener "+k.Listener)
				}
			}
			return
		}
		for route := range p.concerned(c, refusalOf(gateway, r)) {
			named = append(named, route.Kind.Name()+" "+route.Name.String())
		}
	})
	if len(named) == 0 {
		return []string{"Gateway " + gateway.String()}
	}
	slices.Sort(named)
	return slices.Compact(named)
}
