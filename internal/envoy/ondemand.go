package envoy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	sniv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/cert_mappers/sni/v3"
	ondemandv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/cert_selectors/on_demand_secret/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// A filter chain for each certificate makes a listener that grows with them, and all of it is sent when
// there is one more. So hosts with the same TLS settings can share a chain that says nothing of them:
// Envoy asks for the certificate by the server name that a client sends, and finds the route table by a
// scope for that name, which no header of a request can change. The other chains of the listener are as
// they are without.

// serverNames are the server names for which Envoy asks: what hostnames consist of. It ends when it
// asks by a name that isn't UTF-8, and is refused a secret that it has by another name, such as ns/name,
// when a client asks for that. Envoy has made the name lower case here, but not where it asks.
const serverNames = "[a-z0-9.-]+"

// shareChain adds the chain of those that have their certificates on demand to a listener that has all others.
func shareChain(m *listenerv3.Listener, l *ir.Listener, c *ir.Chain) error {
	shared, err := filterChain(l, c)
	if err != nil {
		return err
	}
	m.FilterChains = append(m.FilterChains, shared)
	exact := map[string]*xdsmatcherv3.Matcher_OnMatch{}
	var rest []*xdsmatcherv3.Matcher_MatcherList_FieldMatcher
	for _, chain := range m.FilterChains[:len(m.FilterChains)-1] {
		hostname := ""
		if names := chain.GetFilterChainMatch().GetServerNames(); len(names) > 0 {
			hostname = names[0]
		}
		if hostname == "" {
			return fmt.Errorf("chain %s serves all names", chain.Name)
		}
		chain.FilterChainMatch = nil // it is either all chains that have one, or a matcher for all
		if suffix, is := strings.CutPrefix(hostname, "*"); is {
			rest = append(rest, namesOf(&xdsmatcherv3.StringMatcher{MatchPattern: &xdsmatcherv3.StringMatcher_Suffix{Suffix: suffix}}, chain))
		} else {
			exact[hostname] = leadTo(chain)
		}
	}
	slices.SortStableFunc(rest, func(a, b *xdsmatcherv3.Matcher_MatcherList_FieldMatcher) int {
		return cmp.Compare(len(suffixOf(b)), len(suffixOf(a))) // the most specific first
	})
	rest = append(rest, namesOf(&xdsmatcherv3.StringMatcher{MatchPattern: &xdsmatcherv3.StringMatcher_SafeRegex{SafeRegex: &xdsmatcherv3.RegexMatcher{
		EngineType: &xdsmatcherv3.RegexMatcher_GoogleRe2{GoogleRe2: &xdsmatcherv3.RegexMatcher_GoogleRE2{}}, Regex: serverNames,
	}}}, shared))
	m.FilterChainMatcher = &xdsmatcherv3.Matcher{MatcherType: &xdsmatcherv3.Matcher_MatcherList_{
		MatcherList: &xdsmatcherv3.Matcher_MatcherList{Matchers: rest},
	}}
	if len(exact) > 0 {
		m.FilterChainMatcher = &xdsmatcherv3.Matcher{
			MatcherType: &xdsmatcherv3.Matcher_MatcherTree_{MatcherTree: &xdsmatcherv3.Matcher_MatcherTree{
				Input: serverNameInput,
				TreeType: &xdsmatcherv3.Matcher_MatcherTree_ExactMatchMap{
					ExactMatchMap: &xdsmatcherv3.Matcher_MatcherTree_MatchMap{Map: exact},
				},
			}},
			OnNoMatch: &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Matcher{Matcher: m.FilterChainMatcher}},
		}
	}
	return m.FilterChainMatcher.ValidateAll()
}

// namesOf leads the server names that a text matches to a chain.
func namesOf(text *xdsmatcherv3.StringMatcher, chain *listenerv3.FilterChain) *xdsmatcherv3.Matcher_MatcherList_FieldMatcher {
	return &xdsmatcherv3.Matcher_MatcherList_FieldMatcher{
		Predicate: &xdsmatcherv3.Matcher_MatcherList_Predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_{
			SinglePredicate: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate{
				Input:   serverNameInput,
				Matcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_ValueMatch{ValueMatch: text},
			},
		}},
		OnMatch: leadTo(chain),
	}
}

func suffixOf(m *xdsmatcherv3.Matcher_MatcherList_FieldMatcher) string {
	return m.GetPredicate().GetSinglePredicate().GetValueMatch().GetSuffix()
}

func leadTo(chain *listenerv3.FilterChain) *xdsmatcherv3.Matcher_OnMatch {
	return &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Action{
		Action: &xdscorev3.TypedExtensionConfig{Name: chain.Name, TypedConfig: wrapped(wrapperspb.String(chain.Name))},
	}}
}

var serverNameInput = &xdscorev3.TypedExtensionConfig{
	Name: "envoy.matching.inputs.server_name", TypedConfig: constant(&networkv3.ServerNameInput{}),
}

// wrapped packs a message of protobuf's own, which has no rules.
func wrapped(m proto.Message) *anypb.Any {
	out, err := anypb.New(m)
	if err != nil {
		panic(fmt.Sprintf("envoy: %v", err)) // a text of ours
	}
	return out
}

// OnDemandSelector is what a listener has that finds certificates on demand, and routes by scopes for server names.
const OnDemandSelector = "envoy.tls.certificate_selectors.on_demand_secret"

// askForCertificates has Envoy ask for certificates by server names. It demands that no session is resumed
// then.
func askForCertificates(context *tlsv3.DownstreamTlsContext) {
	context.CommonTlsContext.CustomTlsCertificateSelector = &corev3.TypedExtensionConfig{
		Name: OnDemandSelector, TypedConfig: onDemandSecrets,
	}
	context.SessionTicketKeysType = &tlsv3.DownstreamTlsContext_DisableStatelessSessionResumption{DisableStatelessSessionResumption: true}
	context.DisableStatefulSessionResumption = true
}

var onDemandSecrets = constant(&ondemandv3.Config{
	ConfigSource: ads(),
	CertificateMapper: &corev3.TypedExtensionConfig{
		// Clients without a server name don't come so far.
		Name: "envoy.tls.certificate_mappers.sni", TypedConfig: constant(&sniv3.SNI{DefaultValue: "*"}),
	},
})

// serverNameKey is the key of the scope for a server name.
func serverNameKey(listener, name string) string { return listener + "/" + name }

// IsServerName reports whether a secret is a certificate by the server name that a client has sent. All
// others have names with a slash.
func IsServerName(secret string) bool { return !strings.Contains(secret, "/") }

// HostScope leads a proxy from the server name that a client of a listener has sent to the route table of
// that host.
func HostScope(table, listener, hostname string) *Resource {
	return scope(table, serverNameKey(listener, hostname)).Awaiting(table)
}

// IsHostScope reports whether a scope is for a server name, and not for a shard. Connections that use it
// stay open when it goes, since their chain is that of others as well.
func IsHostScope(name string) bool { return !strings.Contains(name, "/") }
