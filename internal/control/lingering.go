package control

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// lingering are GatewayClasses of ours that were deleted while Gateways use them. They
// count until the last of these goes, or gets another class: deleting a class, by
// uninstalling a chart for one, must not take away what serves.
type lingering map[string]source.Key

// take keeps the deletions of classes in use out of batches.
func (l lingering) take(p *Pipeline, batches []source.Batch) {
	for i := range batches {
		b := &batches[i]
		kept := b.Deleted[:0:0]
		for _, k := range b.Deleted {
			if k.Kind == kindGatewayClass && p.classInUse(k.Name) {
				l[k.Name] = k
				continue
			}
			kept = append(kept, k)
		}
		b.Deleted = kept
		for _, o := range b.Set {
			if source.KeyOf(o).Kind == kindGatewayClass {
				delete(l, o.GetName())
			}
		}
	}
}

// release returns what is to be deleted at last.
func (l lingering) release(p *Pipeline) source.Batch {
	var b source.Batch
	for name, k := range l {
		if !p.classInUse(name) {
			delete(l, name)
			b.Deleted = append(b.Deleted, k)
		}
	}
	return b
}

// classInUse reports whether a class is ours and has a Gateway.
func (p *Pipeline) classInUse(name string) (used bool) {
	p.engine.View(func(c *flow.Ctx) {
		if _, ours := flow.Get(c, p.graph.Classes, name); !ours {
			return
		}
		for _, gw := range flow.All(c, p.inputs.Gateways) {
			if string(gw.Spec.GatewayClassName) == name {
				used = true
				return
			}
		}
	})
	return used
}
