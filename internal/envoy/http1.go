package envoy

import (
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// noHost stands in for the host of a request of HTTP/1.0, which needs none. The name is
// nobody's (RFC 6761).
const noHost = "host.invalid"

// http10 serves requests of HTTP/1.0.
var http10 = &corev3.Http1ProtocolOptions{AcceptHttp_10: true, DefaultHostForHttp_10: noHost}

// goodHost matches what can be a host: a name or an address, with or without a port. Envoy
// makes one value of several Host lines, with commas, which a wildcard would match, or a
// route for all hosts, while a backend takes one of them.
const goodHost = `(?:[a-zA-Z0-9_-]+(?:\.[a-zA-Z0-9_-]+)*|\[[0-9a-fA-F:.]+\])(?::[0-9]{0,5})?`

// hostFilter refuses requests with another host than goodHost, whatever else is wrong with
// them: 400 (RFC 9112, 3.2).
var hostFilter = &hcmv3.HttpFilter{
	Name: "gatehouse.host",
	ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: constant(&faultv3.HTTPFault{
		Abort: &faultv3.FaultAbort{
			ErrorType:    &faultv3.FaultAbort_HttpStatus{HttpStatus: http.StatusBadRequest},
			Percentage:   &typev3.FractionalPercent{Numerator: 100},
			ResponseBody: "The Host of the request is none, or there are several.\n",
		},
		Headers: []*routev3.HeaderMatcher{{
			Name:                 ":authority",
			HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: matching(goodHost)},
			InvertMatch:          true,
		}},
		DisableDownstreamClusterStats: true,
	})},
}
