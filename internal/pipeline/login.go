package pipeline

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// loginPaths are the paths of a Login that the proxy answers itself, with the sessions that they are
// for and the policy that says so.
type loginPaths struct {
	callback, logout string
	session          ir.LoginSession
	policy           object.Name
}

// pathsOf returns the paths of a Login; none where nobody logs in.
func pathsOf(a *ir.Access) loginPaths {
	if a == nil || a.Login == nil {
		return loginPaths{}
	}
	return loginPaths{a.Login.CallbackPath, a.Login.LogoutPath, a.Login.Session, a.Login.Policy}
}

// inheritedPaths are those of what is in force for the rules of a host that don't say themselves.
// Table is what is in force in front of the host.
func inheritedPaths(h *ir.Host, table loginPaths) loginPaths {
	if h.Filters != nil && h.Filters.Access != nil {
		return pathsOf(h.Filters.Access)
	}
	return table
}

// of are the paths of what is in force for a rule that inherits these.
func (l loginPaths) of(r *ir.Rule) loginPaths {
	if r.Filters.Access != nil {
		return pathsOf(r.Filters.Access)
	}
	return l
}

func exactly(path string) ir.PathMatch { return ir.PathMatch{Kind: ir.PathExact, Value: path} }

// The matches of a rule that aren't its own, in place of their positions.
const (
	callbackMatch = -1 - iota
	logoutMatch
)

// withLogins returns the rules of a host with those that people need who log in: wherever a rule has
// that, its host takes the paths of it, whatever the matches of the rule are. Otherwise whoever
// guards /app only would never see anybody come back. A path that another route has to the letter stays
// its own, and of two policies with different sessions the older one has it. Table is what is in force
// in front of the host.
func withLogins(h *ir.Host, table loginPaths) []*ir.Rule {
	inherited := inheritedPaths(h, table)
	var added []*ir.Rule
	add := func(source ir.Source, match int, path string, own *ir.Access) {
		if slices.ContainsFunc(h.Rules, func(r *ir.Rule) bool {
			return r.Match.Path == exactly(path) && r.Source.Route() != source.Route()
		}) {
			return
		}
		source.Match = match
		// A proxy that logs nobody in answers like one that has no such path.
		rule := &ir.Rule{
			Source: source, Status: http.StatusNotFound, Filters: ir.Filters{Access: own},
			Match: ir.Match{Path: exactly(path)},
		}
		switch i := slices.IndexFunc(added, func(r *ir.Rule) bool { return r.Match.Path.Value == path }); {
		case i < 0:
			added = append(added, rule)
		case older(own, added[i].Filters.Access):
			added[i] = rule
		}
	}
	for _, r := range h.Rules {
		if paths := inherited.of(r); paths != (loginPaths{}) {
			add(r.Source, callbackMatch, paths.callback, r.Filters.Access)
			add(r.Source, logoutMatch, paths.logout, r.Filters.Access)
		}
	}
	if added == nil {
		return h.Rules
	}
	for _, r := range added {
		if s := lost(h, inherited, r); s.Path != "" {
			h.Shadows = append(h.Shadows, s)
		}
	}
	return append(added, h.Rules...)
}

// lost returns which rule of another route would get requests for a path of a login, if that one
// didn't; without a path where none would, or the login guards it.
func lost(h *ir.Host, inherited loginPaths, login *ir.Rule) ir.Shadow {
	path, of := login.Match.Path.Value, inherited.of(login)
	i := slices.IndexFunc(h.Rules, func(r *ir.Rule) bool {
		prefix := strings.TrimSuffix(r.Match.Path.Value, "/") // by whole elements
		return r.Match.Path.Kind == ir.PathPrefix && strings.HasPrefix(path+"/", prefix+"/")
	})
	if i < 0 || h.Rules[i].Source.Route() == login.Source.Route() || inherited.of(h.Rules[i]).session == of.session {
		return ir.Shadow{}
	}
	return ir.Shadow{Rule: h.Rules[i].Source, By: login.Source, Path: path, Policy: of.policy}
}

// older reports whether the policy of a rule's login is older than that of another's; what a rule
// inherits is the oldest.
func older(a, b *ir.Access) bool {
	switch {
	case a == nil || b == nil:
		return a == nil && b != nil
	case a.Login.Session == b.Login.Session:
		return false
	}
	return cmp.Or(a.Login.Created.Compare(b.Login.Created), a.Login.Policy.Compare(b.Login.Policy)) < 0
}

// secretsOfLogins declares the secrets that the logins of each Gateway need.
func (p *Pipeline) secretsOfLogins() *flow.Derived[SecretKey, struct{}] {
	return flow.Keys("secrets-of-logins",
		func(k ir.HostKey, h *ir.Host, yield func(SecretKey)) {
			seen := ir.LoginSession{}
			of := func(a *ir.Access) {
				if a == nil || a.Login == nil || a.Login.Session == seen {
					return
				}
				seen = a.Login.Session
				yield(SecretKey{k.Gateway(), seen.ClientSecret()})
				yield(SecretKey{k.Gateway(), seen.Key()})
			}
			of(accessAround(h.Filters))
			for _, r := range h.Rules {
				of(r.Filters.Access)
			}
		}, p.Hosts, p.tablesAsking)
}
