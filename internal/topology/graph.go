package topology

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/policy/inherited"
	"github.com/gatehouse-dev/gatehouse/internal/policy/limits"
	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
)

// Options say what differs between the modes.
type Options struct {
	// ControllerName is the spec.controllerName of classes that are ours.
	ControllerName string
	// AnyController says that all classes are ours, whoever serves their Gateways.
	AnyController bool
	// ImplicitClass is the name of a class that works without a GatewayClass object,
	// unless there is an object of that name with a foreign controllerName. Where it
	// is set, no other controller shares the objects, and a route whose Gateway does
	// not exist is told so. Empty for none.
	ImplicitClass string
	// AnyPolicy says that any Service may have policies, also of kinds that nobody here knows.
	AnyPolicy bool
	// LocalAddresses says whether this host can bind an IP address; nil where any
	// can. It must give the same answer every time.
	LocalAddresses func(ip string) bool
	// SharedHost says that the Gateways share one host, so that two of them can't
	// listen on the same address and port.
	SharedHost bool
	// DefaultAddresses are the IP addresses of Gateways that name none.
	DefaultAddresses []string
	// SystemAuthorities is the path of the file with the certificates of authorities
	// that the proxies' hosts trust; empty where there is none.
	SystemAuthorities string
	// PortOffset is added to every listener's port.
	PortOffset int
	// Unprivileged says that ports below 1024 can't be bound: they are elsewhere. See
	// BindPort.
	Unprivileged bool
	// Provisioned says that a Service leads clients to a Gateway's proxies: addresses
	// are the Service's, and its ports are the listeners'.
	Provisioned bool
	// FleetNamespace is the namespace of all Gateways' proxies; empty for those of the Gateways.
	FleetNamespace string
	// AnyName says that Services and XBackends may lead to any name, also to those of
	// this host: whoever writes them runs the proxies too. Messages name all objects then.
	AnyName bool
	// UnsafeParameters says that parameters may have the proxies of this host write files,
	// where AnyName says that whoever runs them has the objects from somewhere.
	UnsafeParameters bool
	// Instance tells this process from others that serve Gateways of the same names,
	// where Gateways have no UID.
	Instance string
	// Reads says whether the objects of a namespace are read; nil where all are. It must
	// depend on nothing but the namespace.
	Reads func(*corev1.Namespace) bool
	// Experimental says that the objects and their statuses have the fields of the
	// API's experimental channel.
	Experimental bool
	// Settings are those of Gateways where their parameters say nothing; nil for none.
	Settings *v1alpha1.Settings
}

// place is where proxies run.
func (o Options) place() parameters.Place {
	if o.Provisioned {
		return parameters.Pods
	}
	return parameters.Host
}

// Reader is whom messages are for that an object of a namespace has.
func (o Options) Reader(namespace string) condition.Reader {
	return condition.Reader{Namespace: namespace, Operator: o.AnyName}
}

// Graph is the tables of nodes.
type Graph struct {
	Classes  flow.Table[string, *Class]
	Gateways flow.Table[object.Name, *Gateway]
	// Fleets are the proxies that serve Gateways, by Gateway.Fleet, as what is said to all of them.
	Fleets    flow.Table[object.Name, *Gateway]
	Listeners flow.Table[ListenerKey, *Listener]
	// ListenerSets are those of our Gateways, and SetListeners their listeners.
	ListenerSets flow.Table[object.Name, *ListenerSet]
	SetListeners flow.Table[ListenerKey, *Listener]
	// OrphanSets are those of Gateways that are not known.
	OrphanSets flow.Table[object.Name, OrphanSet]
	// AttachedSets counts the ListenerSets that a Gateway has accepted.
	AttachedSets flow.Table[object.Name, int]
	Certificates flow.Table[object.Name, *Certificate]
	Authorities  flow.Table[object.Key, *Authority]
	// ClientCertificates are the Secrets whose certificates Gateways show to their
	// backends.
	ClientCertificates flow.Table[object.Name, object.Name]
	BackendTLSPolicies flow.Table[object.Name, *BackendTLSPolicy]
	Routes             flow.Table[object.Key, *Route]
	Attachments        flow.Table[AttachmentKey, *Attachment]
	// AttachedRoutes counts the routes on every listener that has some.
	AttachedRoutes flow.Table[ListenerKey, int]
	// Ancestors holds, for every BackendTLSPolicy, the Gateways that it concerns,
	// sorted.
	Ancestors flow.Table[object.Name, []Ancestor]
	// BackendTrafficPolicies and BackendTrafficAncestors are the same of XBackendTrafficPolicies.
	BackendTrafficPolicies  flow.Table[object.Name, *BackendTrafficPolicy]
	BackendTrafficAncestors flow.Table[object.Name, []Ancestor]
	// AuthPolicies and AuthAncestors are the same of AuthPolicies, and Auth is what these say
	// together.
	AuthPolicies  flow.Table[object.Name, *auth.Policy]
	AuthAncestors flow.Table[object.Name, []Ancestor]
	Auth          *Inherited[auth.Rule]
	// RateLimitPolicies, RateLimitAncestors and RateLimits are those of RateLimitPolicies.
	RateLimitPolicies  flow.Table[object.Name, *limits.Policy]
	RateLimitAncestors flow.Table[object.Name, []Ancestor]
	RateLimits         *Inherited[limits.Limit]
	// TrafficPolicies, TrafficAncestors and Traffic are those of TrafficPolicies.
	TrafficPolicies  flow.Table[object.Name, *traffic.Policy]
	TrafficAncestors flow.Table[object.Name, []Ancestor]
	Traffic          *Inherited[traffic.Setting]
	// XBackends and XBackendAncestors are the same of XBackends.
	XBackends         flow.Table[object.Name, *XBackend]
	XBackendAncestors flow.Table[object.Name, []Ancestor]
	RouteFilters      flow.Table[object.Name, *RouteFilter]
	// InferencePools and InferencePoolAncestors are the same of InferencePools.
	InferencePools         flow.Table[object.Name, *InferencePool]
	InferencePoolAncestors flow.Table[object.Name, []Ancestor]

	routeFilterAncestors flow.Table[object.Name, []Ancestor]

	in         *Inputs
	options    Options
	neighbours map[object.Kind]neighbours // of what may be missing; nil where messages don't name it
	version    flow.Table[struct{}, Version]

	// parents holds, for every route in Routes, the answers to its parentRefs.
	parents flow.Table[object.Key, []Parent]

	owned             flow.Table[object.Name, *gwv1.Gateway]
	parameters        flow.Table[object.Name, *gatewayParameters]
	defaultParameters gatewayParameters // of all who have no entry there
	ours              flow.Table[object.Name, struct{}]
	hostnameRules     flow.Table[object.Name, *hostnameRules]
	defaults          *flow.Index[gwv1.GatewayDefaultScope, object.Name, defaultGateway]
	grants            flow.Table[grant, struct{}]
	brokenGrants      flow.Table[string, brokenGrant]     // by namespace
	portConflicts     flow.Table[hostPort, portConflicts] // nil unless Options.SharedHost
	// PortsDecided is behind the tables by which Gateways on a shared host take ports from each other; zero without one.
	PortsDecided flow.Mark
	sections     flow.Table[object.Name, []section]
	sharing      flow.Table[object.Name, object.Name]
	labels       flow.Table[string, namespaceLabels]

	// What is read for Gateways, see Contents:
	certificatesOf    usesOf[object.Name]
	authoritiesOf     usesOf[object.Key]
	tlsPoliciesOf     *flow.Index[object.Name, object.Name, []Ancestor]
	routeFiltersOf    *flow.Index[object.Name, object.Name, []Ancestor]
	xBackendsOf       *flow.Index[object.Name, object.Name, []Ancestor]
	authPoliciesOf    *flow.Index[object.Name, object.Name, []Ancestor]
	trafficPoliciesOf *flow.Index[object.Name, object.Name, []Ancestor]
	keySetReaches     flow.Table[object.Name, keyset.Reach]
	keySetsOver       flow.Table[string, map[keyset.Location]bool]
	limitsOver        flow.Table[string, map[inherited.RuleKey]bool]
	labelled          *flow.Index[labelShelf, labelled, struct{}]

	// Of ListenerSets:
	setParents       flow.Table[object.Name, *gwv1.Gateway]
	setsOverQuota    flow.Table[object.Name, metav1.Condition]
	membersOverQuota flow.Table[object.Name, metav1.Condition]
	sets             flow.Table[object.Name, *set]
	ourSets          flow.Table[object.Name, struct{}]
	byDistinctKey    *flow.Index[distinctKey, precedence, orderedListener]
	portOwners       flow.Table[gatewayPort, portOwner]
	setPorts         flow.Table[gatewayPort, struct{}]
	overlaps         flow.Table[overlapKey, struct{}]
	gatewaySetPorts  flow.Table[object.Name, []setPort]
	setParentStates  flow.Table[object.Name, setParentState]
	setSections      flow.Table[object.Name, *setSections]

	listenerFilters, setListenerFilters flow.Table[ListenerKey, *ListenerFilters]

	// Of policies:
	tlsAttached            *policy.Attachments[*BackendTLSPolicy, ir.BackendTLS]
	backendTrafficAttached *policy.Attachments[*BackendTrafficPolicy, ir.RetryBudget]
	authAttached           *policy.Attachments[*auth.Policy, policy.Rules[auth.Rule]]
	limitsAttached         *policy.Attachments[*limits.Policy, policy.Rules[limits.Limit]]
	trafficAttached        *policy.Attachments[*traffic.Policy, policy.Rules[traffic.Setting]]
	servicePolicies        policy.Presence
	affected               affected
	byClass                *flow.Index[string, object.Name, *gwv1.Gateway]
	byPolicyTarget         *flow.Index[object.Key, object.Key, *Route]
	podsByNamespace        *flow.Index[string, object.Name, *Pod]
	byAuthService          *flow.Index[object.Key, object.Name, *auth.Policy]
}

// New declares the tables of the graph. The order is the order of computation:
// each reads only what stands above it.
func New(e *flow.Engine, in *Inputs, o Options) *Graph {
	g := &Graph{in: in, options: o, defaultParameters: gatewayParameters{settings: parameters.Merge(o.Settings)}}
	g.declareNeighbours()
	g.version = g.declareVersion()
	g.Classes = g.declareClasses()
	g.owned = g.declareOwned()
	g.ours = g.declareOurs()
	g.parameters = g.declareParameters()
	g.sharing = g.declareSharing()
	g.hostnameRules = g.declareHostnameRules()
	g.defaults = g.declareDefaultGateways()
	g.grants = declareGrants(in)
	g.brokenGrants = g.declareBrokenGrants()
	g.labels = declareNamespaceLabels(in)
	g.setParents = g.declareSetParents()
	g.setsOverQuota = g.declareSetsOverQuota()
	g.membersOverQuota = g.declareMembersOverQuota()
	g.sets = g.declareSets()
	g.ourSets = g.declareOurSets()
	g.OrphanSets = g.declareOrphanSets()
	g.declareListenerOrder()
	if o.SharedHost {
		g.portConflicts = g.declarePortConflicts()
		g.PortsDecided = e.Declared()
	}
	g.Certificates = g.declareCertificates()
	g.Authorities = g.declareAuthorities()
	g.Gateways = g.declareGateways()
	g.Fleets = g.declareFleets()
	g.ClientCertificates = g.declareClientCertificates()
	g.Listeners = g.declareListeners()
	g.setParentStates = g.declareSetParentStates()
	g.ListenerSets = g.declareListenerSets()
	g.SetListeners = g.declareSetListeners()
	g.AttachedSets = g.declareAttachedSets()
	g.sections = g.declareSections()
	g.setSections = g.declareSetSections()
	g.BackendTLSPolicies = g.declareBackendTLSPolicies()
	g.BackendTrafficPolicies = g.declareBackendTrafficPolicies()
	g.declareKeySets()
	g.declareLabelled()
	g.limitsOver = limits.Over(g.in.RateLimitPolicies)
	g.RateLimitPolicies = g.declareRateLimitPolicies()
	g.XBackends = g.declareXBackends()
	g.RouteFilters = g.declareRouteFilters()
	g.TrafficPolicies = g.declareTrafficPolicies()
	g.trafficAttached = policy.Attach("topology-traffic-policy", traffic.Kind, g.TrafficPolicies)
	g.declareServicePolicies()
	g.InferencePools = g.declareInferencePools()
	g.declarePods()
	g.AuthPolicies = g.declareAuthPolicies()
	g.authAttached = policy.Attach("topology-auth-policy", auth.Kind, g.AuthPolicies)
	g.limitsAttached = policy.Attach("topology-rate-limit-policy", limits.Kind, g.RateLimitPolicies)
	g.declareAffected()
	g.Routes = g.declareRoutes()
	g.declareListenerFilters()
	g.parents = g.declareParents()
	g.declareTargets()
	g.Ancestors = Ancestors(g, "topology-policy-ancestors", g.BackendTLSPolicies, g.tlsAttached)
	g.BackendTrafficAncestors = Ancestors(g, "topology-backend-traffic-policy-ancestors", g.BackendTrafficPolicies, g.backendTrafficAttached)
	g.AuthAncestors = Ancestors(g, "topology-auth-policy-ancestors", g.AuthPolicies, g.authAttached)
	g.RateLimitAncestors = Ancestors(g, "topology-rate-limit-policy-ancestors", g.RateLimitPolicies, g.limitsAttached)
	g.TrafficAncestors = Ancestors(g, "topology-traffic-policy-ancestors", g.TrafficPolicies, g.trafficAttached)
	g.XBackendAncestors = g.declareXBackendAncestors()
	g.InferencePoolAncestors = g.declareInferencePoolAncestors()
	g.routeFilterAncestors = g.declareRouteFilterAncestors()
	g.declarePoliciesOf()
	g.Attachments = g.declareAttachments()
	g.AttachedRoutes = g.declareAttachedRoutes()
	g.Auth = Inherit(g, "auth", g.authAttached)
	g.RateLimits = Inherit(g, "rate-limits", g.limitsAttached)
	g.Traffic = Inherit(g, "traffic", g.trafficAttached)
	onServices(g, g.Traffic, "traffic", g.trafficAttached)
	return g
}
