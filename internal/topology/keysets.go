package topology

import (
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
)

// declareKeySets declares where fetching may lead for a fleet, for those that have more
// than others, and which locations of a namespace are too many.
func (g *Graph) declareKeySets() {
	g.keySetReaches = flow.Map("key-set-reaches", g.Fleets,
		func(_ *flow.Ctx, k object.Name, gw *Gateway, emit func(object.Name, keyset.Reach)) {
			if r := reachOf(gw.Allow); r != keyset.Public {
				emit(k, r)
			}
		}, flow.Equal(flow.Same[keyset.Reach]))
	g.keySetsOver = auth.KeySetsOver(g.in.AuthPolicies)
}

// reachOf is where fetching may lead for the Gateways of a class.
func reachOf(allow *v1alpha1.Allow) keyset.Reach {
	if allow == nil {
		return keyset.Public
	}
	list := make([]keyset.Allowed, 0, len(allow.KeySets))
	for _, a := range allow.KeySets {
		entry := keyset.Allowed{Names: slices.Sorted(slices.Values(a.Names))}
		for _, text := range a.Addresses {
			if prefix, err := netip.ParsePrefix(text); err == nil { // they have been checked
				entry.Addresses = append(entry.Addresses, prefix)
			}
		}
		list = append(list, entry)
	}
	return keyset.Beyond(list)
}

// place is where fetching may lead for all Gateways that allow no more.
func (g *Graph) place() keyset.Reach {
	if g.options.AnyName {
		return keyset.Host
	}
	return keyset.Public
}

// keySet names the set of a location for the routes of a Gateway.
func (g *Graph) keySet(c *flow.Ctx, gateway object.Name, l keyset.Location) keyset.Key {
	reach := g.place()
	if r, ok := flow.Get(c, g.keySetReaches, gateway); ok && reach == keyset.Public {
		reach = r
	}
	return keyset.Key{Location: l, Reach: reach}
}

// fetched returns what is known of the sets that the policies on a Gateway want.
func (g *Graph) fetched(c *flow.Ctx, gateway object.Name) auth.Sets {
	return func(l keyset.Location) (keyset.Answer, bool) {
		return flow.Get(c, g.in.KeySets, g.keySet(c, gateway, l))
	}
}

// Access returns who may pass by what policies say together on a Gateway, as auth.Access does.
func (g *Graph) Access(c *flow.Ctx, gateway object.Name, e *auth.Effective) *ir.Access {
	return auth.Access(e, g.fetched(c, gateway))
}

// KeySets yields the sets that are fetched for the policies of a Gateway. One comes as often
// as it is wanted.
func (g *Graph) KeySets(c *flow.Ctx, gateway object.Name, yield func(keyset.Key)) {
	for name := range flow.Select(c, g.authPoliciesOf, gateway).All() {
		if p, ok := flow.Get(c, g.AuthPolicies, name); ok {
			p.Fetches(func(_ string, l keyset.Location, _ *auth.Rule) { yield(g.keySet(c, gateway, l)) })
		}
	}
}

// FetchedKeys writes the keys that are fetched for a policy, which tell one version of what
// is in force from another.
func (g *Graph) FetchedKeys(c *flow.Ctx, p *auth.Policy, write func(string)) {
	if !p.FetchesSome() {
		return
	}
	list, _ := flow.Get(c, g.AuthAncestors, p.Name)
	for _, a := range list {
		set := g.fetched(c, a.Fleet)
		p.Fetches(func(_ string, l keyset.Location, r *auth.Rule) {
			answer, _ := set(l)
			write(answer.Keys)
			if r.Login != nil {
				write(answer.Endpoints.String())
			}
		})
	}
}

// Fetching is Policy.Fetching on a Gateway that the policy concerns.
func (g *Graph) Fetching(c *flow.Ctx, p *auth.Policy, a Ancestor) (accepted metav1.Condition, waits []string) {
	return p.Fetching(a.Accepted, g.fetched(c, a.Fleet))
}

// Logins yields how people log in by a policy on a Gateway, with the field that says so.
func (g *Graph) Logins(c *flow.Ctx, p *auth.Policy, gateway object.Name, yield func(field string, l *ir.Login)) {
	p.Logins(g.fetched(c, gateway), yield)
}

// LoginSecret returns the text of a secret that sessions need, as auth.LoginSecret does.
func (g *Graph) LoginSecret(c *flow.Ctx, s ir.LoginSession, encrypts bool) ir.Sensitive {
	in, ok := flow.Get(c, g.in.Secrets, s.Secret)
	if !ok {
		return ""
	}
	return auth.LoginSecret(in.Data, s, encrypts)
}

// Verifies reports whether a listener verifies certificates of clients.
func (g *Graph) Verifies(c *flow.Ctx, at ListenerKey) bool {
	l, ok := g.Listener(c, at)
	return ok && l.Clients != nil
}
