package envoy

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
)

// Type is a type of xDS resources.
type Type uint8

// The types that Gatehouse serves, in the order in which additions must reach a
// proxy. How each is served is a row of package xds.
const (
	Clusters Type = iota
	Endpoints
	Secrets
	Extensions
	Listeners
	Scopes
	Routes
	NumTypes
)

var types = [NumTypes]struct {
	name    string // for people
	url     string // in xDS
	message func() proto.Message
}{
	Clusters: {
		name: "cluster", url: "type.googleapis.com/envoy.config.cluster.v3.Cluster",
		message: func() proto.Message { return &clusterv3.Cluster{} },
	},
	Endpoints: {
		name: "endpoints", url: "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
		message: func() proto.Message { return &endpointv3.ClusterLoadAssignment{} },
	},
	Secrets: {
		name: "secret", url: "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
		message: func() proto.Message { return &tlsv3.Secret{} },
	},
	Extensions: {
		name: "extension", url: "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
		message: func() proto.Message { return &corev3.TypedExtensionConfig{} },
	},
	Listeners: {
		name: "listener", url: "type.googleapis.com/envoy.config.listener.v3.Listener",
		message: func() proto.Message { return &listenerv3.Listener{} },
	},
	Scopes: {
		name: "scope", url: "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration",
		message: func() proto.Message { return &routev3.ScopedRouteConfiguration{} },
	},
	Routes: {
		name: "routes", url: "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
		message: func() proto.Message { return &routev3.RouteConfiguration{} },
	},
}

// URL returns the type's xDS name.
func (t Type) URL() string { return types[t].url }

// String returns a short name for people.
func (t Type) String() string {
	if t >= NumTypes {
		return fmt.Sprintf("type-%d", uint8(t))
	}
	return types[t].name
}

// TypeOf returns the type with an xDS name.
func TypeOf(url string) (Type, bool) {
	for t := range NumTypes {
		if types[t].url == url {
			return t, true
		}
	}
	return 0, false
}
