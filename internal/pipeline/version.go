package pipeline

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// versionGate holds back objects while the cluster's definitions of the Gateway API
// are of a version that we don't know: what is served stays as it is, and at the
// start nothing is served. Classes pass, since they say why.
type versionGate struct {
	definitions map[string]*metav1.PartialObjectMetadata
	closed      bool
	// withheld is what came meanwhile, the newest of each; nil for what is gone.
	withheld map[object.Key]source.Object
}

// VersionRefused reports whether objects are held back.
func (p *Pipeline) VersionRefused() bool { return p.gate.closed }

// take returns what of a batch may pass, with all that was held back if it may now.
func (g *versionGate) take(b source.Batch) source.Batch {
	if g.note(b) {
		version, _ := topology.VersionOf(maps.Values(g.definitions))
		g.closed = !version.Usable()
	}
	if !g.closed && len(g.withheld) == 0 {
		return b
	}
	out := source.Batch{Problems: b.Problems, Places: b.Places, Foreign: b.Foreign, Unread: b.Unread}
	if g.withheld == nil {
		g.withheld = map[object.Key]source.Object{}
	}
	for _, k := range b.Deleted {
		if passes(k) {
			out.Deleted = append(out.Deleted, k)
		} else {
			g.withheld[k] = nil
		}
	}
	for _, o := range b.Set {
		if k := source.KeyOf(o); passes(k) {
			out.Set = append(out.Set, o)
		} else {
			g.withheld[k] = o
		}
	}
	if g.closed {
		return out
	}
	for k, o := range g.withheld {
		if o == nil {
			out.Deleted = append(out.Deleted, k)
		} else {
			out.Set = append(out.Set, o)
		}
	}
	g.withheld = nil
	return out
}

// note takes in definitions, and reports whether there were any.
func (g *versionGate) note(b source.Batch) (changed bool) {
	for _, k := range b.Deleted {
		if k.Kind == kind.Definition {
			delete(g.definitions, k.Name.Name)
			changed = true
		}
	}
	for _, o := range b.Set {
		if d, ok := o.(*metav1.PartialObjectMetadata); ok && d.Kind == kind.Definition.Name() {
			if g.definitions == nil {
				g.definitions = map[string]*metav1.PartialObjectMetadata{}
			}
			g.definitions[d.Name] = d
			changed = true
		}
	}
	return changed
}

// passes tells the objects that are never held back.
func passes(k object.Key) bool {
	return k.Kind == kind.Definition || k.Kind == kind.GatewayClass
}
