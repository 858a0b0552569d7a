package pipeline

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// declareBroken says of objects that files have with a mistake where the first one is.
func (p *Pipeline) declareBroken() flow.Table[object.Key, string] {
	byObject := flow.NewIndex(p.Problems, func(_ string, list []source.Problem, yield func(object.Key)) {
		var seen []object.Key
		for _, problem := range list {
			if key, ok := problem.Breaks(); ok && !slices.Contains(seen, key) {
				seen = append(seen, key)
				yield(key)
			}
		}
	}, strings.Compare)
	return flow.Group("broken-objects", byObject,
		func(_ *flow.Ctx, key object.Key, files flow.Members[string, []source.Problem]) (string, bool) {
			for _, list := range files.All() {
				for _, problem := range list {
					if of, ok := problem.Breaks(); ok && of == key {
						return problem.Place(), true
					}
				}
			}
			return "", false
		}, flow.Equal(flow.Same[string]))
}

// brokenClass says where a file has a GatewayClass with a mistake.
func (p *Pipeline) brokenClass(c *flow.Ctx, class string) (at string, ok bool) {
	if p.Inputs.Broken == nil {
		return "", false
	}
	return flow.Get(c, p.Inputs.Broken, object.Key{Kind: kind.GatewayClass, Name: object.Name{Name: class}})
}
