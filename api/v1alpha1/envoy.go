package v1alpha1

import (
	"cmp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Envoy is how the Envoy process runs.
type Envoy struct {
	// Concurrency is the number of worker threads. 0, the default, is one for each CPU
	// of the container's limit, rounded up and at least two, or for each CPU of the node
	// without a limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1024
	Concurrency *int32 `json:"concurrency,omitempty" allow:"Safe"`

	// LogLevel is what Envoy logs of itself. By default that is warning in a cluster,
	// and info where Envoy is a process beside Gatehouse.
	// +optional
	LogLevel *LogLevel `json:"logLevel,omitempty" allow:"Safe"`

	// Bootstrap is merged into the configuration that Envoy starts with: objects
	// field by field, lists are appended. What connects Envoy with its controller can't
	// be set: node, admin, dynamic_resources, the cluster named xds, and the like.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Bootstrap *apiextensionsv1.JSON `json:"bootstrap,omitempty" merge:"whole"`

	// Patches change what proxies are told of listeners, clusters and virtual hosts, one after the other. What decides who
	// may pass, names, and where requests go can't be changed. A patch that can't be applied to something leaves it as it is,
	// and status says so.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Patches []EnvoyPatch `json:"patches,omitzero"`
}

// EnvoyPatch changes resources that Envoy gets.
type EnvoyPatch struct {
	// Type is the type of the resources: Listener, Cluster or VirtualHost.
	// +required
	// +kubebuilder:validation:Enum=Listener;Cluster;VirtualHost
	Type EnvoyPatchType `json:"type"`

	// Name is that of the resources, as "gatehouse translate -o xds" prints it, such as http-80@10.0.0.1; with a * at its end
	// it is for all whose names begin so. That of a virtual host is its domain, and * is for all of them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// Operations are a JSON patch (RFC 6902), with fields as Envoy's documentation writes them, such as
	// /filter_chains/0/filters/0/typed_config/server_name.
	// +required
	Operations apiextensionsv1.JSON `json:"operations"`
}

// EnvoyPatchType is a type of Envoy's resources.
type EnvoyPatchType string

// The types of patches.
const (
	ListenerPatch    EnvoyPatchType = "Listener"
	ClusterPatch     EnvoyPatchType = "Cluster"
	VirtualHostPatch EnvoyPatchType = "VirtualHost"
)

// LogLevel is one of Envoy's levels.
//
// +kubebuilder:validation:Enum=trace;debug;info;warning;error;critical;off
type LogLevel string

// RouteTables is how Envoy keeps the routes of a port, or of a HTTPS listener. It builds a
// table anew when one route in it changes.
type RouteTables struct {
	// ShardAbove is the number of routes above which a table is divided into 128, of which
	// Envoy finds a request's by its host: a change of a route costs it one of these. Each
	// request then costs about 20 µs more of CPU. 512 by default; 0 divides no table. A route
	// counts for each of its hosts and matches. A table of which one host has more than a
	// fourth of the routes, or hosts with wildcards more than a few, is not divided. It is
	// whole again below half of the number. Either way its port gets another configuration,
	// and old connections are drained once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ShardAbove *int32 `json:"shardAbove,omitempty"`
}

// Certificates is how Envoy gets the certificates of HTTPS listeners. A change of one that stands in the
// configuration of a port sends all of the port.
type Certificates struct {
	// OnDemandAbove is the number of certificates of a port above which Envoy asks for one when
	// a client names its host, instead of having them in the configuration of the port: one more
	// listener then costs no more with thousands than with a few. Sessions of TLS are not resumed
	// there, and a host that nobody has asked for since Envoy started needs the controller at its
	// first handshake. 128 by default; 0 is never. Listeners count, and are served so, that have
	// one certificate, a hostname without a wildcard that no other listener of the port has in
	// its wildcard, no HTTP/3 and the default version of TLS; others stay in the configuration.
	// So do all again below half of the number, and those of a second such port of a Gateway.
	// Either way the port gets another configuration, and old connections are drained once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	OnDemandAbove *int32 `json:"onDemandAbove,omitempty"`
}

// Drain is how a proxy ends: it stops being ready, waits for Delay, stops taking
// connections, and waits for those that it has, at most Timeout.
type Drain struct {
	// Delay is how long load balancers may take to notice, 5s by default.
	// +optional
	Delay *gwv1.Duration `json:"delay,omitempty"`

	// Timeout is how long clients may finish, 20s by default.
	// +optional
	Timeout *gwv1.Duration `json:"timeout,omitempty"`
}

// Metrics is what the proxies count.
type Metrics struct {
	// Scrape says whether pods carry the annotations prometheus.io/scrape, port and
	// path, by which Prometheus finds them. True by default.
	// +optional
	Scrape *bool `json:"scrape,omitempty"`

	// Backends says whether there are statistics of every backend. They double the
	// memory that a backend takes, so the default is false.
	// +optional
	Backends *bool `json:"backends,omitempty"`

	// Routes says whether the requests of each route are counted, which the controllers sum over
	// all proxies. True by default. Listeners are drained when it changes.
	// +optional
	Routes *bool `json:"routes,omitempty"`

	// Bytes says whether the bytes of their requests and answers are counted too, which is two more
	// series for each route. False by default. Listeners are drained when it changes.
	// +optional
	Bytes *bool `json:"bytes,omitempty"`
}

// Client is how those who connect are treated.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.http3) && has(self.proxyProtocol) && self.http3 && self.proxyProtocol)",message="http3 and proxyProtocol can't be had together: there is no PROXY protocol over UDP"
// +kubebuilder:validation:XValidation:rule="!(has(self.trustedAddresses) && has(self.trustedHops) && self.trustedHops > 0)",message="trustedAddresses and trustedHops can't be had together: proxies are known by their addresses, or by their number"
type Client struct {
	// HTTP3 serves HTTP/3 on HTTPS listeners that don't say otherwise.
	// +optional
	HTTP3 *bool `json:"http3,omitempty"`

	// HTTP10 serves requests of HTTP/1.0, which are answered 426 otherwise. Those without
	// a Host get to routes for all hosts, and to their backends as host.invalid. False by default.
	// +optional
	HTTP10 *bool `json:"http10,omitempty"`

	// ProxyProtocol takes the addresses of clients from the PROXY protocol, and
	// refuses connections without it.
	// +optional
	ProxyProtocol *bool `json:"proxyProtocol,omitempty"`

	// TrustedHops is how many proxies in front of this one are believed what they say
	// in X-Forwarded headers, 0 by default.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	TrustedHops *int32 `json:"trustedHops,omitempty"`

	// TrustedAddresses are the addresses of proxies in front of this one that are believed what
	// they say in X-Forwarded-For, such as 10.0.0.0/8: the client is the last address there that
	// is none of theirs. Nobody is believed any other X-Forwarded header. It can't be had together with
	// trustedHops.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=64
	TrustedAddresses []string `json:"trustedAddresses,omitzero"`

	// AddressHeader is a header in which proxies at trustedAddresses say who the client is, such as CF-Connecting-IP, in place of
	// X-Forwarded-For. Of all others it is not believed, so it needs trustedAddresses. Backends don't get it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	AddressHeader *string `json:"addressHeader,omitempty"`

	// Limits bound what one client may take.
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// Paths say how the paths of requests are tidied before a route is chosen. A level
	// that sets it replaces the weaker ones' wholly.
	// +optional
	Paths *Paths `json:"paths,omitempty" merge:"whole"`
}

// Paths say how the paths of requests are tidied before a route is chosen. Routes, their
// filters and backends get the same path.
type Paths struct {
	PathRules `json:",inline"`

	// Listeners say otherwise for some listeners.
	// +optional
	// +listType=map
	// +listMapKey=listenerPort
	// +kubebuilder:validation:MaxItems=64
	Listeners []ListenerPaths `json:"listeners,omitzero"`
}

// Of returns the rules for the listeners of a port.
func (p *Paths) Of(port int32) PathRules {
	for i := range p.Listeners {
		if l := &p.Listeners[i]; l.ListenerPort == port {
			return l.PathRules.Or(p.PathRules)
		}
	}
	return p.PathRules
}

// Or returns the rules with those of others where they say nothing.
func (r PathRules) Or(others PathRules) PathRules {
	return PathRules{
		MergeSlashes:   cmp.Or(r.MergeSlashes, others.MergeSlashes),
		EscapedSlashes: cmp.Or(r.EscapedSlashes, others.EscapedSlashes),
	}
}

// ListenerPaths are the rules for the paths of some listeners. What isn't set is as for the
// others.
type ListenerPaths struct {
	// ListenerPort is the port of one or more listeners.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ListenerPort int32 `json:"listenerPort"`

	PathRules `json:",inline"`
}

// PathRules say what becomes of slashes that could lead around a route.
type PathRules struct {
	// MergeSlashes makes one slash of several, so that //admin is /admin. True by default.
	// Backends for which // has a meaning, such as a URL in a path, need false.
	// +optional
	MergeSlashes *bool `json:"mergeSlashes,omitempty"`

	// EscapedSlashes is what becomes of a request whose path has %2F or %5C, which some
	// backends take for slashes. Reject answers 400. Redirect answers 307 with the path
	// that has slashes in their place, and 400 to gRPC; it needs mergeSlashes. Keep
	// leaves them as they are: to routes they are no slashes, so backends that take them
	// for slashes must guard their paths themselves. Reject by default.
	// +optional
	EscapedSlashes *EscapedSlashes `json:"escapedSlashes,omitempty"`
}

// EscapedSlashes is what becomes of escaped slashes.
//
// +kubebuilder:validation:Enum=Reject;Redirect;Keep
type EscapedSlashes string

// What can become of them.
const (
	RejectEscapedSlashes   EscapedSlashes = "Reject"
	RedirectEscapedSlashes EscapedSlashes = "Redirect"
	KeepEscapedSlashes     EscapedSlashes = "Keep"
)

// Limits bound what one client may take.
type Limits struct {
	// HeadersKiB is the size of a request's headers, 60 by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8192
	HeadersKiB *int32 `json:"headersKiB,omitempty"`

	// Headers is the number of a request's headers, 100 by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Headers *int32 `json:"headers,omitempty"`

	// Streams is how many requests may be under way in a connection of HTTP/2 or
	// HTTP/3, 100 by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Streams *int32 `json:"streams,omitempty"`

	// BufferKiB is how much a connection may leave unread, softly, 32 by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	BufferKiB *int32 `json:"bufferKiB,omitempty"`

	// HeadersTimeout is how long a request's headers may take, 30s by default.
	// +optional
	HeadersTimeout *gwv1.Duration `json:"headersTimeout,omitempty"`

	// IdleTimeout ends a connection without requests, or bytes, 1h by default.
	// +optional
	IdleTimeout *gwv1.Duration `json:"idleTimeout,omitempty"`

	// ConnectionDuration ends a connection however busy it is. There is no such limit
	// by default.
	// +optional
	ConnectionDuration *gwv1.Duration `json:"connectionDuration,omitempty"`
}
