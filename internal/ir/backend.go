package ir

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"strconv"
	"strings"
	"unique"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// WeightedBackend is one of a rule's destinations.
type WeightedBackend struct {
	// Backend is the destination. It is zero where the reference can't be used. The
	// backend's share of the requests is then answered with 500, or with UNAVAILABLE
	// for gRPC.
	Backend BackendKey `json:"backend,omitzero"`
	Weight  uint32     `json:"weight"`           // those of weight zero are left out, unless all are zero
	Filters Filters    `json:"filters,omitzero"` // no mirrors, no CORS
	// Session keeps clients with their endpoint of the backend; nil for none.
	Session *Session `json:"session,omitempty"`
}

// Protocol is what a backend speaks.
type Protocol string

// These are the protocols of backends: of requests (GEP-1911), of bytes and of
// datagrams.
const (
	HTTP1     Protocol = "http/1.1"
	H2C       Protocol = "h2c"
	WebSocket Protocol = "ws" // HTTP/1.1 with the upgrade allowed
	TCP       Protocol = "tcp"
	UDP       Protocol = "udp"
)

// Use is what a route wants of a backend, which decides how it is spoken to.
type Use string

// These are the uses of backends.
const (
	UseHTTP Use = ""     // by HTTPRoutes
	UseGRPC Use = "grpc" // by GRPCRoutes, and as a service that authorizes
	UseAuth Use = "auth" // as a service that authorizes, over HTTP: each answer of 2xx is a permission
	UseTCP  Use = "tcp"  // by TCPRoutes and TLSRoutes: bytes
	UseUDP  Use = "udp"  // by UDPRoutes: datagrams
)

// Backend is a destination with its own connection pool: a port of an object, for one
// use. It is a value that compares, and all of it but what each Gateway has for its own
// (the client certificate, private ranges) makes the backend the one that it is: see Key.
type Backend struct {
	// Named is the name of a backend of which nobody knows more, such as one that a
	// file names; empty for all others.
	Named string

	Object   object.Key // that routes refer to; zero for a pool
	Port     int32      // by which they refer to it
	Use      Use
	PortName string // selects the EndpointSlices' port
	Protocol Protocol
	// DNS is the name to resolve, for objects that are another name for a host; empty
	// where the endpoints come from EndpointSlices.
	DNS string
	// TargetPort is the port to connect to where DNS is set; zero where that is Port.
	TargetPort int32
	// Outside says that DNS is to lead out of the cluster: what it resolves to is
	// checked. Private are the ranges of private addresses that it may resolve to
	// nevertheless, separated by commas; they are the Gateway's and no part of the key.
	Outside bool
	Private string
	TLS     BackendTLS  // zero where the backend is spoken to in clear text
	Retry   RetryBudget // zero where the limits of retries are the proxies' own
	// Settings are what policies say of it, for the requests that they are for.
	Settings BackendSettings
	// Picker is asked which endpoint a request is for; zero where the proxy chooses.
	Picker Picker
}

// BackendKey is a backend as rules and tables know it. Two keys are equal exactly if
// all that makes the two backends is. It takes the room of one pointer, since there are
// as many as there are references. The zero key is none.
type BackendKey struct{ handle unique.Handle[keyedBackend] }

// keyedBackend is a backend, with all that many have in common apart.
type keyedBackend struct {
	name object.Name // of the object
	port int32
	how  unique.Handle[backendManner]
}

// backendManner is how a backend is spoken to: the same for most backends of a kind.
type backendManner struct {
	named      string
	kind       object.Kind
	use        Use
	portName   string
	protocol   Protocol
	dns        string
	targetPort int32
	outside    bool
	tls        BackendTLS
	retry      RetryBudget
	settings   BackendSettings
	picker     Picker
}

// Key returns the key of the backend.
func (b Backend) Key() BackendKey {
	b.TLS.ClientCertificate = SecretKey{}
	how := backendManner{b.Named, b.Object.Kind, b.Use, b.PortName, b.Protocol, b.DNS, b.TargetPort, b.Outside, b.TLS, b.Retry, b.Settings, b.Picker}
	return BackendKey{unique.Make(keyedBackend{b.Object.Name, b.Port, unique.Make(how)})}
}

// Backend returns what the key stands for.
func (k BackendKey) Backend() Backend {
	if k.IsZero() {
		return Backend{}
	}
	b := k.handle.Value()
	how := b.how.Value()
	return Backend{
		Named: how.named, Object: object.Key{Kind: how.kind, Name: b.name}, Port: b.port, Use: how.use, PortName: how.portName,
		Protocol: how.protocol, DNS: how.dns, TargetPort: how.targetPort, Outside: how.outside, TLS: how.tls, Retry: how.retry,
		Settings: how.settings, Picker: how.picker,
	}
}

// Picker is who chooses the endpoint of each of the backend's requests.
func (k BackendKey) Picker() Picker {
	if k.IsZero() {
		return Picker{}
	}
	return k.handle.Value().how.Value().picker
}

// NamedBackend returns the key of a backend of which only the name is known.
func NamedBackend(name string) BackendKey {
	if name == "" {
		return BackendKey{}
	}
	return Backend{Named: name}.Key()
}

// Pool returns the key of all backends of a UDP port taken together. Each Gateway has
// one of its own.
func Pool(port uint16) BackendKey { return Backend{Port: int32(port), Use: UseUDP}.Key() }

// IsPool reports whether the backend is the pool of a port.
func (b *Backend) IsPool() bool { return b.Named == "" && b.Object.IsZero() }

// ConnectPort is the port to connect to where DNS is set.
func (b *Backend) ConnectPort() int32 {
	if b.TargetPort != 0 {
		return b.TargetPort
	}
	return b.Port
}

// InClear returns the same backend spoken to without TLS.
func (k BackendKey) InClear() BackendKey {
	b := k.Backend()
	if b.TLS.IsZero() {
		return k
	}
	b.TLS = BackendTLS{}
	return b.Key()
}

// For returns the same backend as it is to requests that a policy is for. What is hashed of them is in their routes.
func (k BackendKey) For(t *Traffic) BackendKey {
	if k.IsZero() || t == nil || t.Backend() == (BackendSettings{}) && t.RetryBudget == nil && t.LoadBalancing == nil {
		return k
	}
	b := k.Backend()
	b.set(t)
	return b.Key()
}

// Under returns the backend as policies want it that are for its Service, among others. What they hash is the
// backend's, since a route may lead to several.
func (b Backend) Under(t *Traffic) Backend {
	if t == nil {
		return b
	}
	if b.Settings.OfService && b.Retry.Interval == 0 { // of policies, and not of an XBackendTrafficPolicy
		b.Retry = RetryBudget{}
	}
	b.set(t)
	b.Settings.OfService = true
	if t.LoadBalancing != nil && t.LoadBalancing.Hash != nil {
		b.Settings.Hash = *t.LoadBalancing.Hash
	}
	return b
}

// set gives the backend what policies say of it.
func (b *Backend) set(t *Traffic) {
	before := b.Settings
	b.Settings = t.Backend()
	b.Settings.ClientIP = before.ClientIP && t.LoadBalancing == nil
	b.Settings.OwnRetries = b.Settings.OwnRetries || before.OwnRetries
	if t.RetryBudget != nil && b.Retry == (RetryBudget{}) {
		b.Retry = *t.RetryBudget
	}
}

// WithOwnRetries returns the same backend as it is to rules that say when a request is repeated.
func (k BackendKey) WithOwnRetries() BackendKey {
	if k.IsZero() {
		return k
	}
	b := k.Backend()
	b.Settings.OwnRetries = true
	return b.Key()
}

// IsZero reports whether no backend is meant.
func (k BackendKey) IsZero() bool { return k == BackendKey{} }

// Equal reports whether two keys are of one backend.
func (k BackendKey) Equal(o BackendKey) bool { return k == o }

// Compare orders keys by the object's name and the port, then by their text.
func (k BackendKey) Compare(o BackendKey) int {
	if k == o {
		return 0
	}
	if k.IsZero() || o.IsZero() {
		return strings.Compare(k.String(), o.String())
	}
	a, b := k.handle.Value(), o.handle.Value()
	if c := cmp.Or(a.name.Compare(b.name), cmp.Compare(a.port, b.port)); c != 0 {
		return c
	}
	return strings.Compare(k.String(), o.String())
}

// String returns kind/ns/name:port, without the kind for a Service, with the use after
// a slash where it is not HTTP, +tls. with a hash of the TLS where there is some, and a
// hash of all else that makes the backend what it is. It is the same in every process.
func (k BackendKey) String() string {
	if k.IsZero() {
		return ""
	}
	b := k.Backend()
	return b.text()
}

// MarshalText returns what String does.
func (k BackendKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name of a backend, and nothing into it.
func (k *BackendKey) UnmarshalText(text []byte) error {
	*k = NamedBackend(string(text))
	return nil
}

var service = object.KindOf("", "Service")

func (b *Backend) text() string {
	if b.Named != "" {
		return b.Named
	}
	if b.IsPool() {
		return string(b.Use) + "-" + strconv.Itoa(int(b.Port))
	}
	text := make([]byte, 0, 80)
	if b.Object.Kind != service {
		text = append(text, b.Object.Kind.Name()...)
		text = append(text, '/') // no namespace has capitals
	}
	text = append(text, b.Object.Namespace...)
	text = append(text, '/')
	text = append(text, b.Object.Name.Name...)
	text = append(text, ':')
	text = strconv.AppendInt(text, int64(b.Port), 10)
	if b.Use != UseHTTP {
		text = append(text, '/')
		text = append(text, b.Use...)
	}
	if !b.TLS.IsZero() {
		text = hex.AppendEncode(append(text, "+tls."...), b.TLS.sum())
	}
	h := fnv.New32a()
	write(h, b.PortName, string(b.Protocol), b.DNS, strconv.Itoa(int(b.TargetPort)))
	if b.Outside {
		write(h, "outside")
	}
	if b.Retry != (RetryBudget{}) {
		_, _ = fmt.Fprintf(h, "retry %+v", b.Retry)
	}
	if b.Settings != (BackendSettings{}) {
		settings, _ := json.Marshal(b.Settings) //nolint:errchkjson // of our own types
		write(h, "settings", string(settings))
	}
	if !b.Picker.IsZero() {
		write(h, "picker", b.Picker.Service.String(), string(b.Picker.Failure))
	}
	text = append(text, '#')
	return string(hex.AppendEncode(text, h.Sum(nil)))
}

// write adds texts to a hash, so that no two lists of them are the same bytes.
func write(h hash.Hash, texts ...string) {
	for _, text := range texts {
		_, _ = io.WriteString(h, text)
		_, _ = h.Write([]byte{0})
	}
}

// backendJSON is the form of a backend in JSON.
type backendJSON struct {
	Name     string       `json:"name"`
	Service  object.Name  `json:"service"`
	Port     int32        `json:"port"`
	PortName string       `json:"portName,omitempty"`
	Protocol Protocol     `json:"protocol"`
	DNS      string       `json:"dns,omitempty"`
	Outside  bool         `json:"outside,omitempty"`
	Private  string       `json:"private,omitempty"`
	TLS      *BackendTLS  `json:"tls,omitempty"`
	Retry    *RetryBudget `json:"retry,omitempty"`
	// Settings are what policies say of it.
	Settings BackendSettings `json:"settings,omitzero"`
	Picker   Picker          `json:"picker,omitzero"`
}

// MarshalJSON writes the backend with the text of its key for a name.
func (b Backend) MarshalJSON() ([]byte, error) {
	out := backendJSON{
		Name: b.Key().String(), Service: b.Object.Name, Port: b.ConnectPort(), PortName: b.PortName, Protocol: b.Protocol, DNS: b.DNS,
		Outside: b.Outside, Private: b.Private, Settings: b.Settings, Picker: b.Picker,
	}
	if !b.TLS.IsZero() {
		out.TLS = &b.TLS
	}
	if b.Retry != (RetryBudget{}) {
		out.Retry = &b.Retry
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes, as a backend that has a name.
func (b *Backend) UnmarshalJSON(text []byte) error {
	var in backendJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*b = Backend{Named: in.Name, Port: in.Port, PortName: in.PortName, Protocol: in.Protocol, DNS: in.DNS, Outside: in.Outside, Private: in.Private, Settings: in.Settings, Picker: in.Picker}
	if !in.Service.IsZero() {
		b.Object = object.Key{Kind: service, Name: in.Service}
	}
	if in.TLS != nil {
		b.TLS = *in.TLS
	}
	if in.Retry != nil {
		b.Retry = *in.Retry
	}
	return nil
}

// Endpoints is where a backend's requests go.
type Endpoints struct {
	Backend   BackendKey `json:"backend"`
	Endpoints []Endpoint `json:"endpoints,omitempty"` // sorted, each address and port once
}

// Endpoint is one address of a backend.
type Endpoint struct {
	Address string `json:"address"` // an IP address; a host name in slices of type FQDN
	Port    uint16 `json:"port"`
	// Draining endpoints get requests only while there is no other one.
	Draining bool `json:"draining,omitempty"`
	// Weight is the endpoint's share among those of a pool; 0 where all are equal.
	Weight uint32 `json:"weight,omitempty"`
	// Cluster is where it is, and what its endpoints get, where that makes a difference; zero else.
	Cluster ClusterShare `json:"cluster,omitzero"`
}
