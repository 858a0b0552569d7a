package xds

import (
	"cmp"
	"slices"
	"strings"
)

// MergeStates joins the states that several servers have of one Gateway. Something is in
// force as soon as one proxy has it, and refused as soon as one refuses it. The state of a
// server without proxies is old: it counts only if no server has any.
func MergeStates(states ...State) State {
	connected := slices.ContainsFunc(states, func(s State) bool { return s.Connected > 0 })
	out := State{Listeners: map[string]string{}}
	type place struct {
		Ref
		part string
	}
	refused := map[place]int{} // its index in out
	for _, s := range states {
		out.Synced = out.Synced || s.Synced
		if connected && s.Connected == 0 {
			continue
		}
		out.Connected += s.Connected
		out.Behind += s.Behind
		out.Carried = out.Carried.merge(s.Carried)
		out.OtherForms = mergeForms(out.OtherForms, s.OtherForms)
		if out.BehindWhy == "" || s.BehindWhy != "" && s.BehindWhy < out.BehindWhy {
			out.BehindWhy = s.BehindWhy
		}
		for revision, message := range s.Refusing {
			if out.Refusing == nil {
				out.Refusing = map[string]string{}
			}
			out.Refusing[revision] = max(out.Refusing[revision], message)
		}
		for name, version := range s.Listeners {
			out.Listeners[name] = max(out.Listeners[name], version)
		}
		for _, r := range s.Rejected {
			at := place{r.Ref, r.Part}
			i, ok := refused[at]
			switch {
			case !ok:
				refused[at] = len(out.Rejected)
				out.Rejected = append(out.Rejected, r)
			case r.worse(out.Rejected[i]):
				out.Rejected[i] = r
			}
		}
	}
	slices.SortFunc(out.Rejected, func(a, b Rejected) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name), strings.Compare(a.Part, b.Part))
	})
	return out
}

// worse reports which of two refusals of the same thing is kept: the one that leaves
// nothing in force, and otherwise the same whatever the order of the two.
func (r Rejected) worse(o Rejected) bool {
	if r.ServingOld != o.ServingOld {
		return o.ServingOld
	}
	return cmp.Or(strings.Compare(r.Version, o.Version), strings.Compare(r.Message, o.Message)) > 0
}
