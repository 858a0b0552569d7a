package xds

import (
	"fmt"
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// virtualHosts is the number of RouteConfiguration's field.
const virtualHosts protowire.Number = 2

// unavailable returns a host that answers 500 to everything. It replaces a new host that a
// proxy refuses: without it, the requests would be served by a wildcard host.
func unavailable(domain string) *envoy.Part {
	host := marshal(&routev3.VirtualHost{
		Name:    domain,
		Domains: []string{domain},
		Routes: []*routev3.Route{{
			Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{
				Status: http.StatusInternalServerError,
				Body: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{
					InlineString: "The proxy refused the configuration of this host.\n",
				}},
			}},
		}},
	})
	body := protowire.AppendBytes(protowire.AppendTag(nil, virtualHosts, protowire.BytesType), host)
	return &envoy.Part{Name: domain, Hash: envoy.Sum(body), Body: body}
}

func marshal(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("xds: marshal %s: %v", m.ProtoReflect().Descriptor().FullName(), err))
	}
	return b
}
