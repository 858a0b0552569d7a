package view

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// Brief returns what a process says of itself when it is ready: a view with all objects but routes, with the
// routes with which something is wrong, and with the first others of each kind, by name. left is
// how many are left out. Transactions wait for a view, and one of a hundred thousand routes takes a second.
func Brief(p *pipeline.Pipeline, t *Troubled, routes int) (v View, left int) {
	bad := t.objects()
	p.Engine.View(func(c *flow.Ctx) {
		first := map[object.Kind][]object.Name{}
		for k := range flow.All(c, p.RouteStatus) {
			if list := first[k.Kind]; !bad[k] {
				first[k.Kind] = among(list, k.Name, routes)
			}
		}
		shown := func(k object.Key) bool {
			list, route := first[k.Kind]
			if !route || bad[k] {
				return true
			}
			_, is := slices.BinarySearchFunc(list, k.Name, object.Name.Compare)
			if !is {
				left++
			}
			return is
		}
		for _, show := range rows(p) {
			show(c, shown, nil, func(it Item) { v.Items = append(v.Items, it) })
		}
		p.AllProblems(c, func(problem source.Problem) { v.Problems = append(v.Problems, problem) })
		v.finish(c, p)
	})
	return v, left
}

// among puts a name into a sorted list of the first names, if it is one of them.
func among(first []object.Name, name object.Name, most int) []object.Name {
	if len(first) == most {
		if name.Compare(first[most-1]) > 0 {
			return first
		}
		first = first[:most-1]
	}
	at, _ := slices.BinarySearchFunc(first, name, object.Name.Compare)
	return slices.Insert(first, at, name)
}
