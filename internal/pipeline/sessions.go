package pipeline

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// sessionHost says that people log in on some hosts of a Gateway: on those of a domain, or, if
// Within, on hosts that are among them. Without a domain it says that they do somewhere.
type sessionHost struct {
	Gateway object.Name
	Domain  string
	Within  bool
}

// loginAt is a domain where people log in, by a policy of a route, or of a listener or above it.
type loginAt struct {
	topology.AttachmentKey // of no route where all have it
	domain                 string
}

// declareSessions declares where browsers have cookies of sessions. Those are sent to a host by its
// name, whatever the port is: what another listener serves gets them too.
func (p *Pipeline) declareSessions() {
	onListener := func(c *flow.Ctx, k topology.ListenerKey, l *topology.Listener, emit func(loginAt, struct{})) {
		if above := p.Graph.Auth.OnListener(c, k); above != nil {
			for _, domain := range sessionsOn(above.Effective, cmp.Or(l.Hostname, "*")) {
				emit(loginAt{topology.AttachmentKey{Listener: k}, domain}, struct{}{})
			}
		}
	}
	onRoute := func(c *flow.Ctx, k topology.AttachmentKey, own *topology.RouteInheritance[auth.Rule], emit func(loginAt, struct{})) {
		a, ok := flow.Get(c, p.Graph.Attachments, k)
		if !ok {
			return
		}
		domains := map[string]bool{}
		own.Each(func(e *auth.Effective) {
			for _, h := range a.Hosts {
				for _, domain := range sessionsOn(e, h.Domain) {
					domains[domain] = true
				}
			}
		})
		for domain := range domains {
			emit(loginAt{k, domain}, struct{}{})
		}
	}
	same := flow.Equal(flow.Same[struct{}])
	p.sessions = flow.Keys("hosts-with-sessions", func(k loginAt, _ struct{}, yield func(sessionHost)) {
		gateway := k.Listener.Fleet()
		yield(sessionHost{Gateway: gateway})
		yield(sessionHost{gateway, k.domain, false})
		for domain := range wider(k.domain) {
			yield(sessionHost{gateway, domain, true})
		}
	},
		flow.Map("logins-of-listeners", p.Graph.Listeners, onListener, same),
		flow.Map("logins-of-set-listeners", p.Graph.SetListeners, onListener, same),
		flow.Map("logins-of-routes", p.Graph.Auth.Routes, onRoute, same))
}

// sessionsOn returns the domains to whose hosts browsers send sessions that people have on one by what
// policies say.
func sessionsOn(e *auth.Effective, domain string) (out []string) {
	if e == nil {
		return nil
	}
	for i := range e.Rules {
		r := &e.Rules[i].Value
		if !r.LogsIn {
			continue
		}
		out = append(out, domain)
		if r.CookieDomain != "" {
			out = append(out, r.CookieDomain, "*."+r.CookieDomain)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// wider yields a domain and those that it is within, up to any.
func wider(domain string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := strings.TrimPrefix(domain, "*."); yield(domain) && domain != "*"; {
			var more bool
			if _, rest, more = strings.Cut(rest, "."); !more {
				domain = "*"
				continue
			}
			domain = "*." + rest
		}
	}
}

// hasSessions reports whether browsers may send cookies of sessions to a host.
func (p *Pipeline) hasSessions(c *flow.Ctx, k ir.HostKey) bool {
	has := func(domain string, within bool) bool {
		_, ok := flow.Get(c, p.sessions, sessionHost{k.Gateway(), domain, within})
		return ok
	}
	if !has("", false) {
		return false // as nearly everywhere
	}
	if has(k.Domain, true) {
		return true
	}
	for domain := range wider(k.Domain) {
		if has(domain, false) {
			return true
		}
	}
	return false
}
