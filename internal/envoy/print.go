package envoy

import (
	"bytes"
	"encoding/json"
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// JSON returns the resource as Envoy's documentation writes it, for a person to
// read. Private keys are left out.
func (r *Resource) JSON() (json.RawMessage, error) {
	var m proto.Message
	switch r.Type {
	case Clusters:
		m = &clusterv3.Cluster{}
	case Endpoints:
		m = &endpointv3.ClusterLoadAssignment{}
	case Secrets:
		m = &tlsv3.Secret{}
	case Listeners:
		m = &listenerv3.Listener{}
	case Routes:
		m = &routev3.RouteConfiguration{}
	default:
		return nil, fmt.Errorf("no type %d", r.Type)
	}
	if err := proto.Unmarshal(r.Body(), m); err != nil {
		return nil, err
	}
	if s, ok := m.(*tlsv3.Secret); ok {
		s.Type = nil // the name is all that may be told
	}
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	// protojson varies its white space on purpose.
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	return compact.Bytes(), nil
}
