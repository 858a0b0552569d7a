package topology

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// Affecting are the policies of a kind that target an object: the whole of it, or one of its
// sections.
type Affecting struct {
	Kind     object.Kind
	Section  string // empty for the whole object
	Policies []object.Name
}

// affected is which objects the policies of some kinds target.
type affected struct {
	presence policy.Presence
	kinds    []func(c *flow.Ctx, on object.Key, yield func(Affecting))
}

// affecting yields the policies of a kind on an object.
func affecting[P any, S policy.Asks[S]](a *policy.Attachments[P, S]) func(*flow.Ctx, object.Key, func(Affecting)) {
	return func(c *flow.Ctx, on object.Key, yield func(Affecting)) {
		all := a.On(c, on)
		for section := range all.Sections() {
			out := Affecting{Kind: a.Kind().Kind, Section: section}
			for _, s := range all.At(section) {
				out.Policies = append(out.Policies, s.Policy)
			}
			slices.SortFunc(out.Policies, object.Name.Compare)
			yield(out)
		}
	}
}

// declareAffected declares which objects are told that policies target them: those of our own
// kinds, which nothing else says there.
func (g *Graph) declareAffected() {
	g.affected = affected{
		presence: policy.NewPresence("affected-objects", g.authAttached, g.limitsAttached, g.trafficAttached),
		kinds: []func(*flow.Ctx, object.Key, func(Affecting)){
			affecting(g.authAttached), affecting(g.limitsAttached), affecting(g.trafficAttached),
		},
	}
}

// Affected returns the policies that target an object or its sections.
func (g *Graph) Affected(c *flow.Ctx, on object.Key) (out []Affecting) {
	if !g.affected.presence.Possible(c, on) {
		return nil
	}
	for _, each := range g.affected.kinds {
		each(c, on, func(a Affecting) { out = append(out, a) })
	}
	return out
}
