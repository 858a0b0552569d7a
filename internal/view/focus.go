package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// Focus chooses what is printed. The zero value is all.
type Focus struct {
	// Namespace leaves out what is in others.
	Namespace string
	// Host leaves the virtual hosts that answer its requests, and what those refer to.
	Host string
	// Route leaves the virtual hosts with rules of an HTTPRoute or a GRPCRoute, whole,
	// since the rules of others may come first; Gateway leaves what one Gateway serves.
	Route   object.Key
	Gateway object.Name
}

// without reports whether what a Gateway serves is left out.
func (f Focus) without(gateway object.Name) bool {
	return Elsewhere(gateway.Namespace, f.Namespace) || f.Gateway != object.Name{} && gateway != f.Gateway
}

// narrow reports whether a part of the hosts is chosen.
func (f Focus) narrow() bool { return f.Host != "" || !f.Route.IsZero() }

// item reports whether the status of an object is printed.
func (f Focus) item(it Item) bool {
	key := it.object()
	switch {
	case Elsewhere(key.Namespace, f.Namespace):
		return false
	case !f.Route.IsZero():
		return key == f.Route
	case f.Gateway != object.Name{}:
		return it.gateway == f.Gateway
	case f.Host != "":
		return slices.ContainsFunc(it.Summary.Hosts, func(h string) bool { return answers(h, f.Host) })
	}
	return true
}

// Missing says that what is chosen doesn't exist, and what does: a route, a Gateway, or a host
// that routes serve; nil where it exists, and where nothing is chosen.
func (f Focus) Missing(p *pipeline.Pipeline) error {
	switch {
	case !f.Route.IsZero():
		return Absent(p, f.Route)
	case f.Gateway != object.Name{}:
		return Absent(p, object.Key{Kind: kind.Gateway, Name: f.Gateway})
	case f.Host != "":
		return f.unknownHost(p)
	}
	return nil
}

// unknownHost says that no route serves the host that is chosen, and which hosts routes do
// serve; nil where one does.
func (f Focus) unknownHost(p *pipeline.Pipeline) error {
	known := map[string]bool{}
	p.Engine.View(func(c *flow.Ctx) {
		for k, h := range flow.All(c, p.Hosts) {
			if len(h.Rules) > 0 && !f.without(k.Gateway()) {
				known[k.Domain] = true
			}
		}
	})
	for _, it := range Of(p).Items { // some routes have no rules there: their hosts are server names
		if it.kind.Family == kind.Route && !Elsewhere(it.Metadata.Namespace, f.Namespace) {
			for _, h := range it.Summary.Hosts {
				known[h] = true
			}
		}
	}
	hosts := slices.Sorted(maps.Keys(known))
	if slices.ContainsFunc(hosts, func(h string) bool { return answers(h, f.Host) }) {
		return nil
	}
	if len(hosts) == 0 {
		return fmt.Errorf("no route serves host %s, nor any other", f.Host)
	}
	const most = 20
	return fmt.Errorf("no route serves host %s; hosts are %s", f.Host, First(len(hosts), most, func(i int) string { return hosts[i] }))
}

// hosts returns which virtual hosts of a route table are chosen, by their domains.
func (f Focus) hosts(domains []string, sources func(domain string) []object.Key) map[string]bool {
	out := map[string]bool{}
	if !f.Route.IsZero() {
		for _, d := range domains {
			out[d] = slices.Contains(sources(d), f.Route)
		}
		return out
	}
	best := ""
	for _, d := range domains {
		// Of two of the same length one is exact, and the other a wildcard.
		if answers(d, f.Host) && (best == "" || len(d) > len(best) || len(d) == len(best) && !strings.HasPrefix(d, "*")) {
			best = d
		}
	}
	if best != "" {
		out[best] = true
	}
	return out
}

// answers reports whether a domain is that of a host: exact, *.suffix, or * for any.
func answers(domain, host string) bool {
	host = strings.ToLower(host)
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i] // a port
	}
	return domain == host || domain == "*" || strings.HasPrefix(domain, "*.") && strings.HasSuffix(host, domain[1:])
}

// routesOf are the routes with rules in a host, one for each rule.
func routesOf(h *ir.Host) []object.Key {
	out := make([]object.Key, len(h.Rules))
	for i, r := range h.Rules {
		out[i] = r.Source.Route()
	}
	return out
}

// pruneIR leaves the chosen hosts of a Gateway, and the backends that they refer to.
func (f Focus) pruneIR(g *gatewayIR) error {
	for table, hosts := range g.Tables {
		var domains []string
		rules := map[string][]object.Key{}
		for _, h := range hosts {
			domains = append(domains, h.Domain)
			rules[h.Domain] = append(rules[h.Domain], routesOf(h)...)
		}
		chosen := f.hosts(domains, func(d string) []object.Key { return rules[d] })
		g.Tables[table] = slices.DeleteFunc(hosts, func(h *ir.Host) bool { return !chosen[h.Domain] })
		if len(g.Tables[table]) == 0 {
			delete(g.Tables, table)
		}
	}
	text, err := json.Marshal(g.Tables)
	if err != nil {
		return err
	}
	g.Backends = slices.DeleteFunc(g.Backends, func(b *ir.Backend) bool { return !mentions(text, b.Key().String()) })
	g.Endpoints = slices.DeleteFunc(g.Endpoints, func(e *ir.Endpoints) bool { return !mentions(text, e.Backend.String()) })
	g.OnDemand = slices.DeleteFunc(g.OnDemand, func(h ir.OnDemandHost) bool { return g.Tables[h.Table] == nil })
	g.Listeners = slices.DeleteFunc(g.Listeners, func(l *ir.Listener) bool {
		return !slices.ContainsFunc(l.Chains, func(c ir.Chain) bool { return g.Tables[c.Table] != nil }) &&
			!slices.ContainsFunc(g.OnDemand, func(h ir.OnDemandHost) bool { return h.Listener == l.Name })
	})
	g.RateLimits = slices.DeleteFunc(g.RateLimits, func(l ir.RateLimit) bool {
		key, err := json.Marshal(l.Key)
		return err != nil || !bytes.Contains(text, key)
	})
	if text, err = json.Marshal([]any{g.Listeners, g.OnDemand, g.Backends}); err != nil {
		return err
	}
	g.Secrets = slices.DeleteFunc(g.Secrets, func(s *ir.Secret) bool { return !mentions(text, s.Name.String()) })
	return nil
}

// pruneXDS leaves the chosen virtual hosts, what refers to their route configurations, and
// what all of these refer to. tables are those that route configurations are of, and sources
// the routes with rules in a Gateway's hosts.
func (f Focus) pruneXDS(types map[string][]printedResource, tables map[string]string, sources func(domain string) []object.Key) error {
	var routes, everywhere []printedResource
	for _, r := range types[envoy.Routes.String()] {
		var table map[string]any
		if err := json.Unmarshal(r.Resource, &table); err != nil {
			return err
		}
		hosts, _ := table["virtualHosts"].([]any)
		var domains []string
		for _, h := range hosts {
			domains = append(domains, domainOf(h))
		}
		chosen := f.hosts(domains, sources)
		hosts = slices.DeleteFunc(hosts, func(h any) bool { return !chosen[domainOf(h)] })
		if len(hosts) == 0 {
			continue
		}
		table["virtualHosts"] = hosts
		text, err := json.Marshal(table)
		if err != nil {
			return err
		}
		pruned := printedResource{r.Name, r.Version, text}
		if slices.ContainsFunc(hosts, func(h any) bool { return !strings.HasPrefix(domainOf(h), "*") }) {
			routes = append(routes, pruned)
		} else {
			everywhere = append(everywhere, pruned)
		}
	}
	// Hosts with wildcards are in all configurations of a table: one will do.
	for _, r := range everywhere {
		if !slices.ContainsFunc(routes, func(other printedResource) bool { return tables[other.Name] == tables[r.Name] }) {
			routes = append(routes, r)
		}
	}
	var text []byte
	keep := func(of envoy.Type, wanted func(printedResource) bool) {
		types[of.String()] = slices.DeleteFunc(types[of.String()], func(r printedResource) bool { return !wanted(r) })
		for _, r := range types[of.String()] {
			text = append(text, r.Resource...)
		}
	}
	hostScope := map[string]bool{}
	for _, r := range types[envoy.Scopes.String()] {
		hostScope[r.Name] = envoy.IsHostScope(r.Name)
	}
	keep(envoy.Listeners, func(r printedResource) bool {
		return slices.ContainsFunc(routes, func(table printedResource) bool {
			return mentions(r.Resource, tables[table.Name]) || hostScope[table.Name] && mentions(r.Resource, envoy.OnDemandSelector)
		})
	})
	keep(envoy.Scopes, func(r printedResource) bool {
		return slices.ContainsFunc(routes, func(table printedResource) bool { return r.Name == table.Name })
	})
	types[envoy.Routes.String()] = routes
	for _, r := range routes {
		text = append(text, r.Resource...)
	}
	mentioned := func(r printedResource) bool { return mentions(text, r.Name) }
	keep(envoy.Extensions, mentioned)
	keep(envoy.Clusters, mentioned)
	keep(envoy.Endpoints, mentioned)
	keep(envoy.Secrets, mentioned)
	for of, list := range types {
		if len(list) == 0 {
			delete(types, of)
		}
	}
	return nil
}

// domainOf returns a virtual host's domain; each of ours has one.
func domainOf(host any) string {
	fields, _ := host.(map[string]any)
	domains, _ := fields["domains"].([]any)
	if len(domains) == 0 {
		return ""
	}
	domain, _ := domains[0].(string)
	return domain
}

// mentions reports whether JSON has a string.
func mentions(text []byte, name string) bool {
	return bytes.Contains(text, []byte(strconv.Quote(name)))
}
