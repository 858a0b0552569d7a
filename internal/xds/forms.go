package xds

import (
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// A route table is whole, or divided into shards, and which of the two may follow from what it was
// before. So may whether a host is found by its server name, with its certificate on demand, or by a
// chain of its own. What makes the resources knows nothing of an earlier process, nor of other replicas
// of the controller; but a proxy that connects names what it has. If it has a table in another form than
// the one in force, connections use that form until they have drained. State says so, and no listener
// and no route is sent, and nothing is removed, before that has been taken in: the form may be made
// again, or the table stay as the proxy has it.

// maxTaking is how long a proxy waits for that: some ms, and more where the process has just started and
// has much to read. Then it gets what there is.
const maxTaking = 10 * time.Second

// naming is how long a proxy that has named its routes may take to name its scopes and secrets. If it has any, it
// does so at once.
const naming = 100 * time.Millisecond

// names reports whether the proxy is about to name what it has, as one does that had listeners when it connected.
func (p *planning) names() bool {
	routes := &p.types[envoy.Routes]
	switch {
	case !p.resumed:
		return false
	case !routes.started:
		return len(p.gateway.entries[envoy.Routes]) > 0 && p.now.Sub(p.connected) < p.gateway.server.grace
	case p.types[envoy.Scopes].started && p.types[envoy.Secrets].started:
		return false
	default:
		return p.now.Sub(p.namedRoutes) < naming
	}
}

// noteForms notes the tables that the proxy had in another form when it connected. It is called once
// both are known, what the proxy had and what it is to have. The names of tables are the Gateway's
// own, whatever the proxy says. The gateway's mutex is held.
func (s *session) noteForms(now time.Time) {
	g := s.gateway
	if g.server.reports.onState == nil {
		return
	}
	had := func(t envoy.Type, name string) bool {
		r := s.seen(Ref{t, name})
		return r != nil && r.acked != ""
	}
	inForce := func(t envoy.Type, name string) bool {
		e := g.entries[t][name]
		return e != nil && !e.want.Spare
	}
	forms := map[string]bool{}
	for name := range g.entries[envoy.Routes] {
		if inForce(envoy.Routes, name) && had(envoy.Routes, envoy.ShardName(name, 0)) {
			forms[name] = !had(envoy.Routes, name)
		}
	}
	for name := range s.each(envoy.Routes) {
		if had(envoy.Routes, name) && inForce(envoy.Routes, envoy.ShardName(name, 0)) {
			forms[name] = false
		}
	}
	// The scope of a host has the name of the host's table. A port that has left the form has scopes for as long as
	// connections drain, but no certificates by server names.
	onDemand := false
	for name := range s.each(envoy.Secrets) {
		onDemand = onDemand || envoy.IsServerName(name) && had(envoy.Secrets, name) && !inForce(envoy.Secrets, hostOf(name))
	}
	for name := range s.each(envoy.Scopes) {
		if envoy.IsHostScope(name) && had(envoy.Scopes, name) && !inForce(envoy.Scopes, name) && inForce(envoy.Routes, name) {
			forms[name] = onDemand
		}
	}
	if len(forms) == 0 {
		return
	}
	s.otherForms, s.takenUntil = forms, now.Add(maxTaking)
	s.notifyAfter(maxTaking)
	g.server.reports.addAlways(g) // a session that has ended may have said the same
}

// tookForms records that what State.OtherForms said has been taken in.
func (g *gateway) tookForms(forms map[string]bool) {
	if len(forms) == 0 {
		return
	}
	for s := range g.sessions {
		for table, divided := range s.otherForms {
			if took, ok := forms[table]; ok && (took || !divided) {
				delete(s.otherForms, table)
			}
		}
	}
	g.server.reports.add(g)
}

// otherForms returns State.OtherForms.
func (g *gateway) otherForms() (all map[string]bool) {
	for s := range g.sessions {
		all = mergeForms(all, s.otherForms)
	}
	return all
}

// mergeForms returns what two maps say together; nil if they say nothing. It may change the first one.
func mergeForms(a, b map[string]bool) map[string]bool {
	if a == nil && len(b) > 0 {
		a = make(map[string]bool, len(b))
	}
	for table, divided := range b {
		a[table] = a[table] || divided
	}
	return a
}

// waitsForForms reports whether listeners, scopes and routes have to wait: the proxy had a table in another
// form, or may have had it, since it has named its listeners and not yet all else.
func (p *planning) waitsForForms() bool {
	g := p.gateway
	if p.names() {
		return true
	}
	if !p.named && p.types[envoy.Routes].started {
		p.named = true
		p.noteForms(p.now)
	}
	if len(p.otherForms) > 0 {
		if p.now.Before(p.takenUntil) {
			return true
		}
		g.server.log.Warn("it takes too long to find out what a proxy still uses of route tables that were divided, or made whole; requests on its old connections may be answered with 404",
			"gateway", g.name.String(), "session", p.id, "tables", slices.Sorted(maps.Keys(p.otherForms)))
		p.otherForms = nil
		g.server.reports.add(g)
	}
	return false
}
