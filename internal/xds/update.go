package xds

import (
	"iter"
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Ref names a resource of one Gateway.
type Ref struct {
	Type envoy.Type
	Name string
}

// String returns type/name.
func (r Ref) String() string { return r.Type.String() + "/" + r.Name }

// Update is what one commit changes for the proxies of one Gateway. The first Update of a
// Gateway is its whole configuration: nothing is answered before it, since "not loaded yet"
// must not look like "empty".
type Update struct {
	Gateway object.Name
	Set     []*envoy.Resource
	Remove  []Ref
	Gone    bool // the Gateway no longer exists; its proxies lose everything
	// TookForms is what State.OtherForms said, if what follows from that is in this Update, or
	// was in one before.
	TookForms map[string]bool
}

// ByGateway yields updates of one Gateway that stand side by side together, as parts of the list.
func ByGateway(updates []Update) iter.Seq2[object.Name, []Update] {
	return func(yield func(object.Name, []Update) bool) {
		for len(updates) > 0 {
			name, n := updates[0].Gateway, 1
			for n < len(updates) && updates[n].Gateway == name {
				n++
			}
			if !yield(name, updates[:n]) {
				return
			}
			updates = updates[n:]
		}
	}
}

// Merge returns one list of updates with the effect of the two lists, one after the other.
// What the first one sets and the second one removes or ends is never sent. Updates of one Gateway
// stand side by side, so that Apply takes them in one step.
func Merge(first, second []Update) []Update {
	if len(first) == 0 {
		return second
	}
	out := append([]Update(nil), first...)
	for _, u := range second {
		i := len(out) - 1 // the last of the Gateway: what came before an end of it is over
		for i >= 0 && out[i].Gateway != u.Gateway {
			i--
		}
		switch {
		case i < 0:
			out = append(out, u)
		case u.Gone: // the end of a Gateway is that of what waited, and need not wait for the same
			out[i] = u
		case out[i].Gone:
			out = slices.Insert(out, i+1, u)
		default:
			out[i] = merge(out[i], u)
		}
	}
	return out
}

func merge(a, b Update) Update {
	changed := map[Ref]bool{}
	for _, r := range b.Set {
		changed[Ref{r.Type, r.Name}] = true
	}
	for _, ref := range b.Remove {
		changed[ref] = true
	}
	out := Update{Gateway: a.Gateway}
	for _, r := range a.Set {
		if !changed[Ref{r.Type, r.Name}] {
			out.Set = append(out.Set, r)
		}
	}
	for _, ref := range a.Remove {
		if !changed[ref] {
			out.Remove = append(out.Remove, ref)
		}
	}
	out.Set = append(out.Set, b.Set...)
	out.Remove = append(out.Remove, b.Remove...)
	out.TookForms = mergeForms(maps.Clone(a.TookForms), b.TookForms)
	return out
}
