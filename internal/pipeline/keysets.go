package pipeline

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
)

// AskedKeySets returns the key sets that are to be fetched, unless they are those of the last
// call, as Asked does for Secrets and ConfigMaps.
func (p *Pipeline) AskedKeySets() (keys []keyset.Key, changed bool) {
	p.Engine.View(func(*flow.Ctx) {
		now := p.Inputs.KeySets.AskedVersion()
		if changed = now != p.lastKeySets; changed {
			p.lastKeySets = now
			keys = slices.Collect(p.Inputs.KeySets.Asked)
		}
	})
	return keys, changed
}

// TakeKeySets takes in what is known of key sets; nil for those that nobody wants any more.
func (p *Pipeline) TakeKeySets(tx *flow.Tx, answers map[keyset.Key]*keyset.Answer) {
	for k, a := range answers {
		if a == nil {
			p.Inputs.KeySets.Delete(tx, k)
		} else {
			p.Inputs.KeySets.Set(tx, k, *a)
		}
	}
}
