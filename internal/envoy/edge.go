package envoy

import (
	"slices"
	"strconv"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// internalHeaders is the prefix of the headers by which Envoys talk to each
// other and are told what to do: timeouts, retries, attempts, clusters. At the
// edge nobody may say such things, so they pass in neither direction, and header
// modifiers may not make any.
const internalHeaders = "x-envoy-"

// lookAlikes are names that a backend which takes _ for - (CGI and its heirs)
// can't tell from a header that the proxy vouches for: by them a client could
// give itself another address, or frame its request anew. Other names with an
// underscore are the application's: some, like api_key, are in wide use, and the
// Gateway API lets routes match them. So Envoy's switch, which rejects or drops
// all of them, is left alone.
const lookAlikes = `x_(forwarded|real|request|envoy)[-_].*|x-(forwarded|real|request|envoy)_.*|` +
	`x-(forwarded|real|request)-.*_.*|content_length|transfer_encoding`

// hearsay is the headers by which proxies tell what they know of a request, but for
// those that are always right: X-Forwarded-For, which is a list, X-Forwarded-Proto,
// which Envoy sets, and X-Forwarded-Client-Cert, which it removes. Nobody may say
// such things of himself, since there are backends that believe them.
const hearsay = `forwarded|x-real-ip|x-forwarded-(host|port|prefix|server|scheme|ssl|protocol|by)`

// fromInside is the headers that Envoy believes whoever connects where it looks for a client's address by those
// of proxies. It sets the first two itself where they are missing.
const fromInside = `x-forwarded-proto|x-request-id|` + internalHeaders + `.*`

// onArrival is what happens to every request before a route is chosen.
//
// The address of the peer, or of whom the PROXY protocol names in its place, is
// appended to X-Forwarded-For here and not by the connection manager, which in the
// place of a client on this very machine would write some other address of the
// machine.
func onArrival(c ir.Client, further ...*mutationv3.HeaderMutation) ([]*corev3.TypedExtensionConfig, error) {
	removed := hearsay + "|" + lookAlikes
	if c.TrustedHops > 0 {
		removed = lookAlikes
	}
	if len(c.TrustedAddresses) > 0 {
		removed += "|" + fromInside
	}
	mutations, err := pack(&earlyv3.HeaderMutation{Mutations: slices.Concat(addressFrom(c.AddressHeader), withoutPorts(c), []*mutationv3.HeaderMutation{
		removeHeaders(matching(removed)),
		{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
			Header: &corev3.HeaderValue{
				Key: "x-forwarded-for", Value: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
			},
			AppendAction: corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD,
		}}},
	}, further)})
	return []*corev3.TypedExtensionConfig{{
		Name: "envoy.http.early_header_mutation.header_mutation", TypedConfig: mutations,
	}}, err
}

// addressFrom has a header of proxies in the place of X-Forwarded-For. Whether they are believed is found out from there: the
// list is read from its end, which is the peer, so that nobody is believed who isn't trusted.
func addressFrom(header string) []*mutationv3.HeaderMutation {
	if header == "" {
		return nil
	}
	// All of its values, of which the last is the nearest proxy's: a client's own may stand before.
	all := `%CEL('` + header + `' in request.headers ? request.headers['` + header + `'] : '')%`
	return []*mutationv3.HeaderMutation{
		removeHeaders(exactly("x-forwarded-for")),
		{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
			Header:       &corev3.HeaderValue{Key: "x-forwarded-for", Value: all},
			AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		}}},
		removeHeaders(exactly(header)),
	}
}

// readPorts is how many addresses at the end of X-Forwarded-For may have a port where proxies are known by their
// addresses. Each costs every such request an expression.
const readPorts = 4

// withoutPorts takes the ports from the addresses in X-Forwarded-For that may be the client's. Some proxies write them
// there, and Envoy then takes the whole for no address.
func withoutPorts(c ir.Client) []*mutationv3.HeaderMutation {
	const forwarded = "request.headers[\"x-forwarded-for\"]"
	text := forwarded
	switch {
	case c.TrustedHops > 0:
		text = withoutPort(text, c.TrustedHops)
	case len(c.TrustedAddresses) > 0:
		for i := range uint32(readPorts) {
			text = withoutPort(text, i+1)
		}
	default:
		return nil
	}
	// Where none has a port the value is empty, which changes nothing.
	some := forwarded + `.matches('[.0-9]+:\\d|\\x5d:\\d')`
	return []*mutationv3.HeaderMutation{{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: "x-forwarded-for", Value: "%CEL(" + some + " ? " + text + " : '')%"},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS,
	}}}}
}

// withoutPort is an expression that takes the port from one address of a list, counted from its end. An IPv6 address has
// brackets then.
func withoutPort(list string, n uint32) string {
	const address = `\\s*(?:\\x5b([0-9A-Fa-f:.]+)\\x5d:\\d+|((?:\\d+\\.){3}\\d+):\\d+|([^,]*?))\\s*`
	regex := "^(?:((?:.*,)?)" + address + "((?:,[^,]*){" + strconv.Itoa(int(n-1)) + "})|(.*))$"
	return "re.extract(" + list + ", '" + regex + `', '\\1\\2\\3\\4\\5\\6')`
}

// edgeFilter removes the internal headers of clients, what the connection manager
// makes of them, and those of backends that have an Envoy of their own in front.
var edgeFilter = &headermutationv3.HeaderMutation{Mutations: &headermutationv3.Mutations{
	RequestMutations:  removeInternal,
	ResponseMutations: removeInternal,
}}

var removeInternal = []*mutationv3.HeaderMutation{removeHeaders(&matcherv3.StringMatcher{
	MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: internalHeaders},
})}

func removeHeaders(names *matcherv3.StringMatcher) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_RemoveOnMatch_{
		RemoveOnMatch: &mutationv3.HeaderMutation_RemoveOnMatch{KeyMatcher: names},
	}}
}

// changeRequests has the first filter change the requests of a level besides, in addition to what it is
// told for the level already.
func changeRequests(settings *map[string]*anypb.Any, more ...*mutationv3.HeaderMutation) error {
	m := &headermutationv3.HeaderMutationPerRoute{}
	if is := (*settings)[edgeSlot]; is != nil {
		if err := is.UnmarshalTo(m); err != nil {
			return err
		}
	}
	if m.Mutations == nil {
		m.Mutations = &headermutationv3.Mutations{}
	}
	m.Mutations.RequestMutations = append(m.Mutations.RequestMutations, more...)
	return tell(settings, edgeSlot, m)
}
