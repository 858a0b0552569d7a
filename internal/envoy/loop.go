package envoy

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// hopHeader says through which Gateways a request has come, a token for each time, like
// CDN-Loop (RFC 8586). No route may change it, or a route to its own Gateway could go
// round for ever. A client that makes up tokens harms its own request only.
const hopHeader = "x-gatehouse-hop"

// maxHops is how often a request may pass one Gateway. An application behind it may call
// it again for another host and forward all headers; whoever comes a third time goes
// round. A copy for a mirror has all tokens twice, and so may not come back at all:
// every time round would multiply the copies.
const maxHops = 2

// loopFilter is the name of the filter that ends loops.
const loopFilter = "envoy.filters.http.fault"

// hops is what a request's header says. It is never cut: what a client puts there must
// not push out the tokens.
const hops = "%REQ(" + hopHeader + ")%"

// noteHop adds a token to a request. The header stays one line, since Envoy's operator
// may read no more than the first.
func noteHop(token string) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: hopHeader, Value: hops + " " + token},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}}}
}

// hopsOfMirror are the changes to the copy of a request.
var hopsOfMirror = []*mutationv3.HeaderMutation{noteHop(hops)}

// hopsOfCheck are for requests to authorization services over gRPC. Those over HTTP have
// the header of the request that they are about.
var hopsOfCheck = []*corev3.HeaderValue{{Key: hopHeader, Value: hops}}

// endLoops makes a connection manager answer 508 to requests that go round. The filter comes first among those that may answer.
func endLoops(m *hcmv3.HttpConnectionManager, l *ir.Listener) error {
	if l.Hop == "" {
		return nil
	}
	filter, err := pack(&faultv3.HTTPFault{
		Abort: &faultv3.FaultAbort{
			ErrorType:    &faultv3.FaultAbort_HttpStatus{HttpStatus: http.StatusLoopDetected},
			Percentage:   &typev3.FractionalPercent{Numerator: 100},
			ResponseBody: "The request has come to this Gateway before: a route leads back to it.\n",
		},
		Headers: []*routev3.HeaderMatcher{{
			Name:                 hopHeader,
			HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: matching(rounds(l.Hop))},
		}},
		DisableDownstreamClusterStats: true,
	})
	if err != nil {
		return err
	}
	m.HttpFilters = slices.Insert(slices.Clone(m.HttpFilters), 1, &hcmv3.HttpFilter{
		Name: loopFilter, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: filter},
	})
	return nil
}

// rounds matches the header, all its values taken together, of a request that has come
// more often than it may, this time included.
func rounds(token string) string {
	return strings.Repeat(".*"+regexp.QuoteMeta(token), maxHops+1) + ".*"
}
