package pipeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// takenPath is a path of a login on a host where it is somebody else's.
type takenPath struct {
	Host    ir.HostKey
	Session ir.LoginSession
	Path    string
	By      object.Key // the route that has it as an exact match, or the policy of another login
}

func (k takenPath) String() string {
	return k.Host.String() + k.Path + ": " + k.By.String() + " before " + k.Session.String()
}

func (k takenPath) compare(o takenPath) int {
	return cmp.Or(strings.Compare(k.Host.Domain, o.Host.Domain), k.By.Compare(o.By), strings.Compare(k.Path, o.Path),
		k.Host.Compare(o.Host), strings.Compare(k.Session.String(), o.Session.String()))
}

// pathAt is a path of a login on a Gateway.
type pathAt struct {
	Gateway object.Name
	Session ir.LoginSession
	Path    string
}

func (k pathAt) String() string { return k.Gateway.String() + k.Path + ": " + k.Session.String() }

// declareTakenPaths declares where logins don't have their paths.
func (p *Pipeline) declareTakenPaths() {
	all := flow.Map("taken-login-paths", p.Hosts,
		func(c *flow.Ctx, k ir.HostKey, h *ir.Host, emit func(takenPath, struct{})) {
			if _, ok := flow.Get(c, p.sessions, sessionHost{Gateway: k.Gateway()}); !ok {
				return // as nearly everywhere
			}
			at, _ := flow.Get(c, p.fronts, k.TableKey)
			takenPaths(h, at.login, func(s ir.LoginSession, path string, by object.Key) {
				emit(takenPath{k, s, path, by}, struct{}{})
			})
		}, flow.Equal(flow.Same[struct{}]))
	p.takenPaths = flow.NewIndex(all,
		func(k takenPath, _ struct{}, yield func(pathAt)) { yield(pathAt{k.Host.Gateway(), k.Session, k.Path}) }, takenPath.compare)
}

// takenPaths yields the paths on a host that logins don't have there, and who has them. Table is as in
// withLogins, which has given the host its rules.
func takenPaths(h *ir.Host, table loginPaths, yield func(s ir.LoginSession, path string, by object.Key)) {
	inherited := inheritedPaths(h, table)
	var seen []pathAt
	for _, r := range h.Rules {
		l := inherited.of(r)
		if l == (loginPaths{}) {
			continue
		}
		for _, path := range []string{l.callback, l.logout} {
			at := pathAt{Session: l.session, Path: path}
			if slices.Contains(seen, at) {
				continue
			}
			seen = append(seen, at)
			if by := takenBy(h, inherited, l.session, path); by != (object.Key{}) {
				yield(l.session, path, by)
			}
		}
	}
}

// takenBy returns who has a path of a login on a host; nobody where the login itself guards all
// that has it.
func takenBy(h *ir.Host, inherited loginPaths, login ir.LoginSession, path string) object.Key {
	for _, r := range h.Rules {
		if r.Match.Path != exactly(path) {
			continue
		}
		ofLogin := r.Source.Match < 0 // which takes all requests for the path
		switch other := inherited.of(r); {
		case other.session != login && ofLogin:
			return object.Key{Kind: kind.AuthPolicy, Name: other.policy}
		case other.session != login:
			return r.Source.Route()
		case ofLogin:
			return object.Key{}
		}
	}
	return object.Key{}
}

// takenNotes is what to say to the reader of a policy of the paths that its login doesn't have; none
// where it has them.
func (p *Pipeline) takenNotes(c *flow.Ctx, gateway object.Name, field string, l *ir.Login) (notes []string) {
	reader := p.Options.Topology.Reader(l.Policy.Namespace)
	where := func(path string) (out []string) {
		for k := range flow.Select(c, p.takenPaths, pathAt{gateway, l.Session, path}).All() {
			text := condition.TakenPath(k.Host.Domain, reader.Object(k.By.Kind.Name(), k.By.Namespace, k.By.Name.Name))
			if !slices.Contains(out, text) { // as on another port
				out = append(out, text)
			}
		}
		return out
	}
	if at := where(l.CallbackPath); len(at) > 0 {
		notes = append(notes, condition.NoteCallbackTaken(field, l.CallbackPath, at))
	}
	if at := where(l.LogoutPath); len(at) > 0 {
		notes = append(notes, condition.NoteLogoutTaken(field, l.LogoutPath, at))
	}
	return notes
}
