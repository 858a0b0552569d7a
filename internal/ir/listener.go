package ir

import "github.com/gatehouse-dev/gatehouse/internal/object"

// Listener is one port of a Gateway: all Gateway API listeners that share it. TCP
// and UDP ports of the same number are two.
type Listener struct {
	Gateway object.Name `json:"gateway"`
	Name    string      `json:"name"` // stable: protocol family and port, such as http-80, tls-443
	UDP     bool        `json:"udp,omitempty"`
	// TLS says that clients speak TLS: the server name that they ask for selects
	// the chain.
	TLS      bool   `json:"tls,omitempty"`
	Port     uint16 `json:"port"`     // as the Gateway says
	BindPort uint16 `json:"bindPort"` // where Envoy listens
	// Mapped says that clients connect to Port, and are led to BindPort on the way.
	Mapped bool `json:"mapped,omitempty"`
	// Hop is what requests are marked with that come by, so that one that comes back
	// again and again is told; empty for no such mark.
	Hop       string    `json:"hop,omitempty"`
	Addresses []string  `json:"addresses"` // IP addresses to bind, at least one, sorted
	Client    Client    `json:"client,omitzero"`
	Telemetry Telemetry `json:"telemetry,omitzero"`
	// Filters are for all requests that come by the listener, as those of a Host are;
	// nil for none.
	Filters *Filters `json:"filters,omitempty"`
	Chains  []Chain  `json:"chains"` // sorted by hostname; without TLS exactly one
}

// ClientPort is the port that clients connect to.
func (l *Listener) ClientPort() uint16 {
	if l.Mapped {
		return l.Port
	}
	return l.BindPort
}

// Chain says what becomes of a connection to a listener: the TLS settings, if there are
// any, and what serves the connection.
type Chain struct {
	// Hostname is the server name that selects the chain: exact, *.suffix, or
	// empty for every name without a chain of its own, and for listeners that see
	// no names.
	Hostname string `json:"hostname,omitempty"`
	// TLS is how TLS is terminated; nil where it passes through or there is none.
	TLS *TLS `json:"tls,omitempty"`
	// HTTP3 says that the chain is also served over QUIC, on the UDP port of the
	// same number.
	HTTP3 bool `json:"http3,omitempty"`

	// Exactly one of the two is set, unless OnDemand: requests go to a route table, bytes and
	// datagrams are forwarded.
	Table   string   `json:"table,omitempty"`
	Forward *Forward `json:"forward,omitempty"`
	// Sharded says that the table is in several route configurations, by the requests' hosts.
	Sharded bool `json:"sharded,omitempty"`
	// OnDemand says that the chain is for all hosts whose certificates a proxy asks for when a client
	// names them. It has neither hostname, certificates nor table, which are found by the server name
	// that the client has sent. A listener has at most one.
	OnDemand bool `json:"onDemand,omitempty"`
}

// Forward sends what comes to backends as it is.
type Forward struct {
	// Source is the route; zero where no route is attached.
	Source Source `json:"source,omitzero"`
	// Backends share connections, or the sources of datagrams, by weight. The share of
	// a backend that can't be used is closed or dropped. Where there are no backends,
	// everything is.
	Backends []WeightedBackend `json:"backends,omitempty"`
	// Pool, for datagrams, is all backends taken together: a proxy has one set of
	// endpoints for a UDP port, whatever is routed there. See package translate.
	Pool BackendKey `json:"pool,omitzero"`
}

// Routed reports whether a route is attached for connections: the proxies' filter for them has
// a name under which it gets what the route says. For datagrams all of it is in the Pool.
func (f *Forward) Routed() bool { return f.Pool.IsZero() && f.Source != (Source{}) }

// OnDemandHost is a host of a listener whose certificate proxies ask for.
type OnDemandHost struct {
	Listener    string    `json:"listener"` // its name
	Hostname    string    `json:"hostname"` // exact
	Certificate SecretKey `json:"certificate"`
	Table       string    `json:"table"`
}

// TLS is how a chain terminates TLS.
type TLS struct {
	Certificates []SecretKey `json:"certificates"` // in order of preference; none in a chain OnDemand
	// MinVersion is the least that a client must speak; empty for the default.
	MinVersion TLSVersion `json:"minVersion,omitempty"`
	// Clients is how certificates of clients are checked; nil where none is asked for.
	Clients *Clients `json:"clients,omitempty"`
}

// Verifies reports whether each client has shown a certificate that passed.
func (t *TLS) Verifies() bool { return t != nil && t.Clients != nil && !t.Clients.Fallback }

// Clients is how certificates of clients are checked.
type Clients struct {
	Authorities SecretKey `json:"authorities"` // those who may sign them
	// Fallback lets clients in that have no certificate or one that doesn't pass.
	Fallback bool `json:"fallback,omitempty"`
}

// TLSVersion is a version of TLS.
type TLSVersion string

// The versions that can be asked for. Older ones are broken.
const (
	TLS12 TLSVersion = "1.2"
	TLS13 TLSVersion = "1.3"
)
