package topology

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Class is a GatewayClass of ours. A class that works without an object has no
// entry in the table of classes.
type Class struct {
	Name   string
	Object *gwv1.GatewayClass // nil for a class that works without an object
	// Accepted is the class's Accepted condition.
	Accepted metav1.Condition
	// SupportedVersion is the condition of that type; zero where nothing tells the
	// version.
	SupportedVersion metav1.Condition
	frozen           bool // the version is why the class is not accepted
	// missing is the name of a class that does not exist, where this class is that which
	// a Gateway had before it named that one.
	missing string
	// InvalidParameters says that the class is not accepted for its parameters. Its
	// Gateways go on as they are.
	InvalidParameters bool
	parameters        *v1alpha1.GatewayParameters // nil for none that can be used
	// Blueprint is the name of the GatewayBlueprint that the parameters name; empty for none.
	Blueprint string
}

// Gateway is a Gateway of one of our classes.
type Gateway struct {
	Name   object.Name
	Object *gwv1.Gateway
	Class  string
	// Fleet names the proxies that serve the Gateway: its own, under its own name, or those
	// that the Gateways of its class share, see Graph.Fleets.
	Fleet object.Name
	// MissingClass is the name of the class that the Gateway names, where it does not
	// exist; Class is then the one that the Gateway had before.
	MissingClass string
	// Parameters are the settings of the Gateway's proxies: those of the parameters of
	// its class and its own, merged; never nil.
	Parameters *v1alpha1.Settings
	// Allow is what the class lets the Gateway ask for; nil for the default of everything.
	// It stays in force while the class's parameters can't be used.
	Allow *v1alpha1.Allow
	// Frozen says that the parameters can't be used or the class does not exist, and that
	// what runs goes on as it is: the Gateway is served although it is not accepted, and
	// its fleet is neither changed nor, where there is none, created.
	Frozen bool
	// Accepted is the Gateway's Accepted condition. See Served for what it means to
	// its listeners.
	Accepted metav1.Condition
	// Unusable, where set, is why the Gateway can't be Programmed although it is
	// Accepted, such as an address that this host doesn't have.
	Unusable *metav1.Condition
	// ResolvedRefs is the Gateway's ResolvedRefs condition.
	ResolvedRefs metav1.Condition
	// Addresses are the IP addresses that spec.addresses asks for and that can be
	// used, sorted; nil for the default ones.
	Addresses []string
	// Assigned are those addresses as the spec asks for them; none for the default
	// ones.
	Assigned []Address
	// NoAddress says that the spec asks for addresses of which none can be used. No
	// listener serves then.
	NoAddress bool
	// AddressesAssigned is the condition of that type; nil in the API's standard
	// channel, which doesn't have it.
	AddressesAssigned *metav1.Condition
	// Provisioned says that the Gateway's addresses are those of a Service. Assign gives
	// them then. The fields above are empty, but for AddressesAssigned, which is not nil in
	// the API's experimental channel.
	Provisioned bool
	// ClientCertificate is the Secret whose certificate is shown to backends; zero
	// for none.
	ClientCertificate object.Name
	Listeners         []*Listener // in the order of the spec
}

// AllowsName reports whether routes of the Gateway may lead to a DNS name. What bytes are
// sent to is not checked by any proxy, so such a name must be listed by itself.
func (g *Gateway) AllowsName(host string, use ir.Use) bool {
	b := g.Parameters.Backends
	if b == nil {
		return false
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return slices.ContainsFunc(b.ExternalNames, func(allowed string) bool {
		suffix, wild := strings.CutPrefix(allowed, "*")
		if !wild {
			return host == allowed
		}
		return use != ir.UseTCP && len(host) > len(suffix) && strings.HasSuffix(host, suffix)
	})
}

// Served reports whether the Gateway's listeners serve, as far as that is for the
// Gateway to say.
func (g *Gateway) Served() bool {
	return g.Accepted.Status == metav1.ConditionTrue || g.Frozen
}

// Address is an address of a Gateway for people to see.
type Address struct {
	Type        gwv1.AddressType
	Value       string
	Routability gwv1.GatewayAddressRoutabilityType
}

// ListenerSet is a ListenerSet of one of our Gateways, or of one that doesn't exist.
type ListenerSet struct {
	Name    object.Name
	Object  *gwv1.ListenerSet
	Gateway object.Name
	// Accepted is the set's Accepted condition. Its listeners serve only while it is
	// true.
	Accepted metav1.Condition
	// Unusable is the Gateway's.
	Unusable  *metav1.Condition
	Listeners []*Listener // in the order of the spec; none where the Gateway refuses the set
}

// ListenerKey names a listener. It is a handle, because every route on the listener, and
// every table of such routes, has it in a key of its own.
type ListenerKey struct{ handle unique.Handle[keyedListener] }

type keyedListener struct {
	fleet, gateway, set object.Name
	name                string
}

// ListenerOf names a listener of a Gateway. The ListenerSet that defines it is zero for
// the Gateway itself.
func ListenerOf(gateway, set object.Name, name string) ListenerKey {
	return ListenerKey{unique.Make(keyedListener{gateway, gateway, set, name})}
}

// on names the same listener where a fleet serves it that is not its Gateway's own.
func (k ListenerKey) on(fleet object.Name) ListenerKey {
	v := k.value()
	if v.fleet == fleet {
		return k
	}
	v.fleet = fleet
	return ListenerKey{unique.Make(v)}
}

func (k ListenerKey) value() keyedListener {
	if k == (ListenerKey{}) {
		return keyedListener{}
	}
	return k.handle.Value()
}

// Gateway is the one that has the listener, by itself or by a ListenerSet.
func (k ListenerKey) Gateway() object.Name { return k.value().gateway }

// Fleet names the fleet that serves the listener: that of its Gateway, under the Gateway's
// name, or the one that its class's Gateways share.
func (k ListenerKey) Fleet() object.Name { return k.value().fleet }

// Set is the ListenerSet that defines it; zero for the Gateway itself.
func (k ListenerKey) Set() object.Name { return k.value().set }

// Name is its name in what defines it.
func (k ListenerKey) Name() string { return k.value().name }

// String returns ns/name/listener, with the ListenerSet's name before the
// listener's where there is one.
func (k ListenerKey) String() string {
	if k.Set() != (object.Name{}) {
		return k.Gateway().String() + "/" + k.Set().String() + "/" + k.Name()
	}
	return k.Gateway().String() + "/" + k.Name()
}

// Owner names the object that defines the listener.
func (k ListenerKey) Owner() object.Key {
	if k.Set() != (object.Name{}) {
		return object.Key{Kind: kind.ListenerSet, Name: k.Set()}
	}
	return object.Key{Kind: kind.Gateway, Name: k.Gateway()}
}

// Compare orders keys by Gateway, set, name.
func (k ListenerKey) Compare(o ListenerKey) int {
	if k == o {
		return 0
	}
	a, b := k.value(), o.value()
	return cmp.Or(a.gateway.Compare(b.gateway), a.set.Compare(b.set), strings.Compare(a.name, b.name), a.fleet.Compare(b.fleet))
}

// TableOf returns the table that has a listener: that of the Gateways' own, or that of the
// ListenerSets'.
func TableOf[V any](k ListenerKey, own, sets flow.Table[ListenerKey, V]) flow.Table[ListenerKey, V] {
	if k.Set().IsZero() {
		return own
	}
	return sets
}

// Listener returns a listener, of a Gateway or a ListenerSet.
func (g *Graph) Listener(c *flow.Ctx, k ListenerKey) (*Listener, bool) {
	return flow.Get(c, TableOf(k, g.Listeners, g.SetListeners), k)
}

// Listener is one listener of a Gateway.
type Listener struct {
	Key      ListenerKey
	Port     uint16
	BindPort uint16 // Port with the port offset; 0 where that is no port
	Protocol gwv1.ProtocolType
	// Barred says that its namespace may not use the hostname, see v1alpha1.Allow. Nothing
	// is kept from others for its sake.
	Barred bool
	// Passthrough says that TLS goes through to the backends as it is.
	Passthrough bool
	Hostname    string // exact or *.suffix in lower case; empty for any
	// Kinds are the route kinds that may attach: allowed by the listener and
	// fitting its protocol.
	Kinds      []gwv1.RouteGroupKind
	Namespaces NamespaceRule
	// Certificates are the Secrets to terminate TLS with: those that exist, may be
	// referred to and hold a usable pair.
	Certificates []object.Name
	// Validity stands beside Certificates, one for one. No table knows what time it
	// is: whether a certificate has expired is for status to say.
	Validity []Validity
	// HTTP3 says whether an HTTPS listener is served over QUIC too.
	HTTP3 bool
	// MinTLSVersion is the least that clients must speak; empty for the default.
	MinTLSVersion ir.TLSVersion
	// Clients is how certificates of clients are checked; nil where none is asked for.
	Clients *ClientValidation
	// Filters are what requests meet before a route is chosen, in this order, see Graph.FiltersOf.
	// One that can't be served is nil.
	Filters []*gwv1.HTTPExternalAuthFilter
	// Serves says whether the listener gets traffic. It does unless its Gateway is
	// not accepted, it is in conflict, its protocol is not supported, its port is
	// not available, TLS has no usable certificate, or certificates of clients are to
	// be checked and there is nothing to check them with.
	Serves bool
	// Conditions are Accepted, Conflicted, ResolvedRefs and, where it is true,
	// OverlappingTLSConfig; Programmed is decided by what the proxies say.
	Conditions []metav1.Condition
}

// Frontend returns what clients distinguish the listener by.
func (l *Listener) Frontend() Frontend { return Frontend{l.Port, l.Protocol, l.Hostname} }

// Frontend is what clients distinguish the listeners of a Gateway by. The Gateway API
// calls listeners that differ in it distinct.
type Frontend struct {
	Port     uint16
	Protocol gwv1.ProtocolType
	Hostname string // as in Listener
}

// HasRequests reports whether the protocol is made of HTTP requests. The others are
// forwarded as bytes or datagrams.
func (f Frontend) HasRequests() bool {
	return f.Protocol == gwv1.HTTPProtocolType || f.Protocol == gwv1.HTTPSProtocolType
}

// Validity is when a certificate is valid.
type Validity struct {
	NotBefore, NotAfter time.Time // of the leaf
}

// Certificate is what a Secret that a Gateway of ours refers to holds, whether or
// not the reference is permitted.
type Certificate struct {
	Name object.Name
	// Problem says why the Secret can't be used. The rest is empty then, or of the last pair
	// that could be, see KeptCertificate.
	Problem string
	// Until, where the Secret doesn't exist, is that of KeptCertificate.
	Until    time.Time
	Chain    string // PEM, certificates only, the leaf first
	Key      ir.Sensitive
	Names    []string // of hosts: exact or *.suffix, sorted
	Validity Validity
}

// NamespaceRule says from which namespaces routes may attach.
type NamespaceRule struct {
	From     gwv1.FromNamespaces
	Selector labels.Selector // for From == Selector
}

// Route is a route with at least one parentRef that is ours: see doc.go.
type Route struct {
	Key    object.Key
	Object RouteObject
	// Rules stand beside the rules of the spec, one for one.
	Rules []RouteRule
	// Unresolved says which references can't be used; nil when all can.
	Unresolved *metav1.Condition
	// PolicyTargets are what the route refers to whose statuses, or whose policies'
	// statuses, name the Gateways of the route: XBackends, InferencePools, and Services with
	// policies.
	// They are sorted, each once; nil for most routes.
	PolicyTargets []object.Key
}

// ResolvedRefs is the condition that all parents of the route share.
func (r *Route) ResolvedRefs() metav1.Condition {
	if r.Unresolved != nil {
		return *r.Unresolved
	}
	return condition.RouteResolvedRefs()
}

// RouteRule is what a rule's references resolve to.
type RouteRule struct {
	Backends []BackendRef // one for one with spec.rules[].backendRefs
	Mirrors  []BackendRef // one for each RequestMirror filter, in order
	Auth     *BackendRef  // of the first ExternalAuth filter; nil without one
	// Extensions are one for each ExtensionRef filter, in order; nil where there is no such filter.
	Extensions []*RouteFilter
}

// BackendRef is a reference and what it resolves to.
type BackendRef struct {
	Backend ir.BackendKey     // zero when the reference can't be used
	Problem *metav1.Condition // why not; a ResolvedRefs condition
}

// Parent is one parentRef of a route that is ours, and the answer to it.
type Parent struct {
	// Ref is the parentRef: one of spec.parentRefs, or one that stands for a default
	// Gateway.
	Ref *gwv1.ParentReference
	// Gateway is the one that the parentRef names, or that of the ListenerSet that it
	// names; zero for a ListenerSet that doesn't exist.
	Gateway object.Name
	// Fleet is the one that serves that Gateway.
	Fleet object.Name
	// Answer is what the parent says; nil when it accepts the route and notes nothing.
	Answer *metav1.Condition

	// attached are the listeners that accept the route by this parentRef.
	attached []*Attachment
}

func newParent(gateway object.Name, accepted metav1.Condition, attached []*Attachment) Parent {
	p := Parent{Gateway: gateway, Fleet: gateway, attached: attached}
	if accepted != condition.RouteAccepted() {
		p.Answer = &accepted
	}
	return p
}

// Accepted says whether the parent accepts the route.
func (p Parent) Accepted() metav1.Condition {
	if p.Answer != nil {
		return *p.Answer
	}
	return condition.RouteAccepted()
}

// Attached yields the listeners that accept the route by this parentRef.
func (p Parent) Attached(yield func(ListenerKey) bool) {
	for _, a := range p.attached {
		if !yield(a.Key.Listener) {
			return
		}
	}
}

// AttachmentKey names a route on a listener.
type AttachmentKey struct {
	Route    object.Key
	Listener ListenerKey
}

// Fleet names the one that serves the listener.
func (k AttachmentKey) Fleet() object.Name { return k.Listener.Fleet() }

// String returns "HTTPRoute ns/name on ns/name/listener".
func (k AttachmentKey) String() string { return k.Route.String() + " on " + k.Listener.String() }

// Compare orders keys by listener, then route.
func (k AttachmentKey) Compare(o AttachmentKey) int {
	return cmp.Or(k.Listener.Compare(o.Listener), k.Route.Compare(o.Route))
}

// Attachment is a route on a listener, with the hosts that it serves there.
type Attachment struct {
	Key      AttachmentKey
	Frontend Frontend // the listener's
	// Hosts are sorted by domain, each once. Hosts that another listener owns are
	// left out, and all of them where the listener is in conflict: the route counts
	// as attached, and gets no traffic there.
	Hosts []AttachedHost
}

// AttachedHost is one host of an attachment.
type AttachedHost struct {
	// Domain is the intersection of the listener's and the route's hostname: exact,
	// *.suffix, or * for any.
	Domain string
	// Hostname is the route's own, which decides precedence between routes with the
	// same intersection; empty where the route has none.
	Hostname string
}
