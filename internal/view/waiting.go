package view

import (
	"fmt"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// gather tells with a cause what waits for it, and marks what waits.
func (v *View) gather(c *flow.Ctx, p *pipeline.Pipeline) {
	waiters := map[object.Key][]*Item{} // by what they wait for
	for i := range v.Items {
		it := &v.Items[i]
		if reason, _, bad := it.Summary.Trouble(); !bad || reason != condition.ReasonWaiting {
			continue
		}
		for _, cause := range p.Graph.Waits(c, it.object()) {
			if list := waiters[cause]; !slices.Contains(list, it) {
				waiters[cause] = append(list, it)
			}
		}
	}
	if len(waiters) == 0 {
		return
	}
	tell := func(cause object.Key, message *string) {
		list := waiters[cause]
		if len(list) == 0 {
			return
		}
		*message = source.Also(*message, waitingText(list))
		for _, it := range list {
			it.Summary.WaitsFor = append(it.Summary.WaitsFor, cause.String())
		}
		delete(waiters, cause) // it is told once
	}
	for i := range v.Problems {
		if cause, ok := v.Problems[i].Breaks(); ok {
			tell(cause, &v.Problems[i].Message)
		}
	}
	for i := range v.Items {
		sum := &v.Items[i].Summary
		for j := range sum.Listeners {
			if l := &sum.Listeners[j]; !l.OK && l.State != pending && l.Message != "" {
				tell(v.Items[i].object(), &l.Message)
			}
		}
	}
}

// Causes are the items of which nothing else in the view tells what is wrong with them: no
// problem with an input, and no object for which they wait.
func (v View) Causes() []Item {
	told := map[[2]string]bool{}
	for _, p := range v.Problems {
		told[[2]string{p.Key.String(), complaint(p)}] = true
	}
	return slices.DeleteFunc(slices.Clone(v.Items), func(it Item) bool {
		return len(it.Summary.WaitsFor) > 0 || told[[2]string{it.Key(), it.Summary.Message}]
	})
}

// waitingText says who waits for something.
func waitingText(list []*Item) string {
	if len(list) == 1 {
		return list[0].Key() + " waits for it"
	}
	noun := "routes"
	if slices.ContainsFunc(list, func(it *Item) bool { return it.kind.Family != kind.Route }) {
		noun = "objects"
	}
	return fmt.Sprintf("%d %s wait for it", len(list), noun)
}
