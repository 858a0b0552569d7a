package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// served is what a client of a server name gets.
type served struct {
	Hostname     string // of the chain
	Certificates []string
	MinVersion   string
	Clients      string            // whose certificates are asked for
	Hosts        map[string]string // the bytes of each host, or its name where the table's policy stands beside it
}

func listenerOf(port int) string { return fmt.Sprintf("tls-%d@127.0.0.1", port) }

// serves is what a port serves; nil for a connection that is refused.
func (p *past) serves(port int, sni string) *served {
	r := p.sent[xds.Ref{Type: envoy.Listeners, Name: listenerOf(port)}]
	if r == nil {
		return nil
	}
	return p.servedBy(r, port, sni, false)
}

// servedBy is what a version of a listener serves, to new connections, or to those that are open.
func (p *past) servedBy(r *envoy.Resource, port int, sni string, open bool) *served {
	m := &listenerv3.Listener{}
	p.decode(r, m)
	chain := chainFor(m, sni)
	if chain == nil {
		return nil
	}
	secure := &tlsv3.DownstreamTlsContext{}
	if chain.TransportSocket == nil {
		return &served{}
	}
	if err := chain.TransportSocket.GetTypedConfig().UnmarshalTo(secure); err != nil {
		p.t.Fatal(err)
	}
	manager := &hcmv3.HttpConnectionManager{}
	if err := chain.Filters[0].GetTypedConfig().UnmarshalTo(manager); err != nil {
		p.t.Fatal(err)
	}
	out := &served{Hostname: hostnameOf(m, chain), Hosts: map[string]string{}}
	out.MinVersion = secure.CommonTlsContext.TlsParams.TlsMinimumProtocolVersion.String()
	out.Clients = fmt.Sprint(secure.RequireClientCertificate.GetValue(), secure.CommonTlsContext.GetCombinedValidationContext().GetValidationContextSdsSecretConfig().GetName(),
		secure.CommonTlsContext.GetValidationContextSdsSecretConfig().GetName())
	var names []string
	onDemand := secure.CommonTlsContext.CustomTlsCertificateSelector != nil
	if onDemand {
		names, out.Hostname = []string{sni}, sni
	}
	for _, s := range secure.CommonTlsContext.TlsCertificateSdsSecretConfigs {
		names = append(names, s.Name)
	}
	if open {
		names = nil
	}
	for _, name := range names {
		s := p.sent[xds.Ref{Type: envoy.Secrets, Name: name}]
		if s == nil {
			if onDemand {
				return nil // the handshake fails
			}
			p.t.Fatalf("there is no secret %s", name)
		}
		secret := &tlsv3.Secret{}
		p.decode(s, secret)
		out.Certificates = append(out.Certificates, fmt.Sprint(envoy.Sum(secret.GetTlsCertificate().GetCertificateChain().GetInlineBytes())))
	}
	scoped := func(key string) string {
		for ref, r := range p.sent {
			if ref.Type != envoy.Scopes {
				continue
			}
			scope := &routev3.ScopedRouteConfiguration{}
			p.decode(r, scope)
			if scope.Key.Fragments[0].GetStringKey() == key {
				return scope.RouteConfigurationName
			}
		}
		return ""
	}
	for _, host := range []string{"a.test", "b.test", "x.w.test", "z.w.test", "other.test", "nowhere.invalid"} {
		table := ""
		switch {
		case onDemand:
			table = scoped(fmt.Sprintf("tls-%d/%s", port, sni))
		case manager.GetRds() != nil:
			table = manager.GetRds().RouteConfigName
		default:
			table = scoped(envoy.ShardName(chain.Name, envoy.ShardOf(host)))
		}
		routes := p.sent[xds.Ref{Type: envoy.Routes, Name: table}]
		if routes == nil {
			out.Hosts[host] = "no route table " + table
			continue
		}
		part := partFor(routes, host)
		if part == nil {
			continue
		}
		out.Hosts[host] = part.Name
		if !slices.ContainsFunc(slices.Collect(maps.Keys(p.objects)), func(k object.Key) bool { return k.Kind == kind.AuthPolicy }) {
			out.Hosts[host] += fmt.Sprintf(" %s", part.Hash)
		}
	}
	return out
}

func (p *past) decode(r *envoy.Resource, m proto.Message) {
	if err := proto.Unmarshal(r.Body(), m); err != nil {
		p.t.Fatalf("%s: %v", r.Name, err)
	}
}

// partFor returns the host of a route table that serves a name.
func partFor(r *envoy.Resource, host string) (best *envoy.Part) {
	for _, part := range r.Parts() {
		suffix, wildcard := strings.CutPrefix(part.Name, "*")
		if part.Name == host || wildcard && strings.HasSuffix(host, suffix) && (best == nil || strings.HasPrefix(best.Name, "*") && len(part.Name) > len(best.Name)) {
			best = part
		}
	}
	return best
}

// chainFor returns the chain of a listener that a server name leads to; nil for none.
func chainFor(m *listenerv3.Listener, sni string) (best *listenerv3.FilterChain) {
	length := -1
	for _, c := range m.FilterChains {
		hostname := hostnameOf(m, c)
		suffix, wildcard := strings.CutPrefix(hostname, "*")
		switch {
		case hostname == sni:
			return c
		case length < 0 && isShared(c), length < len(hostname) && wildcard && strings.HasSuffix(sni, suffix):
			best, length = c, len(hostname)
		case length < 0 && hostname == "" && !isShared(c):
			best, length = c, 0
		}
	}
	return best
}

func isShared(c *listenerv3.FilterChain) bool { return strings.HasSuffix(c.Name, "/on-demand") }

// hostnameOf is the hostname by which a listener leads to a chain; empty for all, and for the chain of those that
// have their certificates on demand.
func hostnameOf(m *listenerv3.Listener, c *listenerv3.FilterChain) string {
	if names := c.GetFilterChainMatch().GetServerNames(); len(names) > 0 {
		return names[0]
	}
	matcher := m.FilterChainMatcher
	if tree := matcher.GetMatcherTree(); tree != nil {
		for name, to := range tree.GetExactMatchMap().Map {
			if to.GetAction().Name == c.Name {
				return name
			}
		}
		matcher = matcher.OnNoMatch.GetMatcher()
	}
	for _, f := range matcher.GetMatcherList().GetMatchers() {
		if suffix := f.Predicate.GetSinglePredicate().GetValueMatch().GetSuffix(); suffix != "" && f.OnMatch.GetAction().Name == c.Name {
			return "*" + suffix
		}
	}
	return ""
}
