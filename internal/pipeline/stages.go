package pipeline

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/foreign"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// outside is what is not an object: the time, to the minute, and feedback.
type outside struct {
	clock    *flow.Input[struct{}, time.Time]
	proxies  *flow.Input[object.Name, *answers]
	rejected *flow.Input[refusal, status.Rejection]
	withheld *flow.Input[object.Name, status.Withheld] // see TakeWithheld
	// acknowledged are the marks that the proxies of Gateways have, see declareCarried.
	acknowledged *flow.Input[markKey, lacking]
	// unextended is what of a Gateway's resources extension servers have no usable answer about; none without servers.
	unextended *flow.Input[object.Name, []string]
	// Problems are what sources say of inputs, by file or by object.
	Problems *flow.Input[string, []source.Problem]
	places   *flow.Input[string, []source.Place]
	// fleetStates is what there is to say of provisioned fleets; few have an entry.
	fleetStates *flow.Input[object.Name, infra.State]
	// asked is what the configuration asks of fleets, where somebody else makes it.
	asked  *flow.Input[object.Name, infra.Asked]
	shards *shards
	demand *demand

	rejectedBy *flow.Index[object.Name, refusal, status.Rejection] // by Gateway
}

// policed is what policies and bounds say, at the level where it is in force.
type policed struct {
	portFilters  flow.Table[PortKey, *ir.Filters]
	portPolicies flow.Table[PortKey, []object.Key]
	marks        map[object.Kind]flow.Table[object.Key, uint64] // of policies, by their kinds
	carried      flow.Table[object.Name, *[]uint64]
	// How requests are counted, and RateLimits, which say how many are let through, by the
	// filters that count.
	limits       inForce[ir.RateLimits]
	limitsBySlot *flow.Index[LimitSlot, limitKey, struct{}]
	RateLimits   *flow.Derived[LimitSlot, []ir.RateLimit]
	SharedLimits *flow.Derived[object.Name, struct{}] // Gateways whose proxies count together
	sessions     flow.Table[sessionHost, struct{}]
	traffic      inForce[ir.Traffic] // how requests and answers pass

	overBudget *flow.Derived[routeAt, overrun] // of regular expressions
	overQuota  *flow.Derived[routeAt, overrun] // of namespaces
	crowded    flow.Table[Tenant, struct{}]    // who has routes over quota
	tenants    flow.Table[Tenant, tenantUsage]

	packed     *flow.Index[policyAt, packing, struct{}]
	takenPaths *flow.Index[pathAt, takenPath, struct{}]
}

// hosts is what routes come to: rules, then the hosts of route tables.
type hosts struct {
	rules          *flow.Derived[object.Key, *routeRules]
	attachedByHost *flow.Index[ir.HostKey, topology.AttachmentKey, *topology.Attachment]
	Hosts          *flow.Derived[ir.HostKey, *ir.Host]
	fallbacks      *flow.Derived[ir.HostKey, bool]
	// FallbackHosts are the hosts that have an answer although no route serves them.
	FallbackHosts  *flow.Derived[ir.HostKey, *ir.Host]
	forwards       *flow.Derived[ir.HostKey, *ir.Host]
	tablesAsking   *flow.Derived[ir.HostKey, *ir.Host] // see tableServices
	hostsByBackend *flow.Index[BackendKey, ir.HostKey, *ir.Host]
	hostParts      *flow.Derived[ir.HostKey, hostPart]
	fallbackParts  *flow.Derived[ir.HostKey, hostPart]
	// Sharded are the tables that are in several route configurations, or could be.
	Sharded        *flow.Derived[ir.TableKey, Sharding]
	configurations *flow.Derived[ResourceKey, configuration]
}

// ports is what clients connect to.
type ports struct {
	// portSettings are ports without chains and filters. Ports have all that are listed in the proxies' listener.
	portSettings  flow.Table[PortKey, *ir.Listener]
	tableChains   flow.Table[ir.TableKey, tableChain]
	listedChains  flow.Table[ir.TableKey, tableChain]
	ownedHosts    flow.Table[portHost, ownedHost]
	forwardChains flow.Table[PortKey, []ir.Chain]
	Ports         *flow.Derived[PortKey, *ir.Listener]
	RouteTables   *flow.Derived[ir.TableKey, TableFront]
	fronts        flow.Table[ir.TableKey, hostFront]
	// OnDemand are the ports that serve certificates on demand, or could.
	OnDemand        *flow.Derived[PortKey, bool]
	onDemandClients flow.Table[PortKey, clients]
	onDemandHosts   *flow.Derived[ir.TableKey, onDemandHost]
	onDemandNames   *flow.Derived[ResourceKey, ir.SecretKey]
	sockets         flow.Table[binding, struct{}]     // see declareSockets
	pools           *flow.Derived[BackendKey, Member] // of UDP ports
}

// Resources are what proxies are sent, per Gateway.
type Resources struct {
	// Fleets are the Gateways that have proxies.
	Fleets              *flow.Derived[object.Name, struct{}]
	Listeners           *flow.Derived[ListenerAddress, *envoy.Resource]
	Scopes              *flow.Derived[ResourceKey, *envoy.Resource]
	RouteConfigurations *flow.Derived[ResourceKey, *envoy.Resource]
	TableAccess         *flow.Derived[ResourceKey, TableAccess]
	LimitFilters        *flow.Derived[ResourceKey, *envoy.Resource]
	Forwarders          *flow.Derived[ResourceKey, Forwarder]
	Members             *flow.Derived[BackendKey, Member]
	Collectors          *flow.Derived[ResourceKey, *envoy.Resource]
	Secrets             *flow.Derived[SecretKey, *envoy.Resource]

	byClusterName *flow.Index[nameBucket, BackendKey, Member]
}

// fleets is what is made for Gateways in a cluster.
type fleets struct {
	// Infrastructure is what provisioned fleets follow from; nil where none are.
	Infrastructure *flow.Derived[object.Name, *infra.Gateway]
	// SharedFleets are the shared fleets whose Services there are, with the class of each; nil where no fleets are.
	SharedFleets *flow.Derived[object.Name, string]
	// Kept is what is to outlive this process, see parameters.Kept.
	Kept *flow.Derived[object.Name, *parameters.Kept]
	// UsedClasses says of our classes whether Gateways use them.
	UsedClasses *flow.Derived[string, bool]
	// fleetServices are the Services in front of fleets, of former classes of a Gateway
	// too.
	fleetServices *flow.Index[object.Name, object.Name, *corev1.Service]
}

// statuses is what authors of objects are told.
type statuses struct {
	proxyStates                *flow.Derived[object.Name, *status.ProxyState]
	ClassStatus                *flow.Derived[string, *gwv1.GatewayClassStatus]
	GatewayStatus              *flow.Derived[object.Name, *gwv1.GatewayStatus]
	ListenerSetStatus          *flow.Derived[object.Name, *gwv1.ListenerSetStatus]
	RouteStatus                *flow.Derived[object.Key, *gwv1.RouteStatus]
	BackendTLSPolicyStatus     *flow.Derived[object.Name, *gwv1.PolicyStatus]
	BackendTrafficPolicyStatus *flow.Derived[object.Name, *gwv1.PolicyStatus]
	AuthPolicyStatus           *flow.Derived[object.Name, *gwv1.PolicyStatus]
	RateLimitPolicyStatus      *flow.Derived[object.Name, *gwv1.PolicyStatus]
	RouteFilterStatus          *flow.Derived[object.Name, *v1alpha1.RouteFilterStatus]
	TrafficPolicyStatus        *flow.Derived[object.Name, *gwv1.PolicyStatus]
	XBackendStatus             *flow.Derived[object.Name, *gwxv1alpha1.BackendStatus]
	InferencePoolStatus        *flow.Derived[object.Name, *poolsv1.InferencePoolStatus]
	// OtherStatus is that of objects of kinds that nothing else depends on.
	OtherStatus *flow.Derived[object.Key, any]
	// Statuses are the tables of statuses, for all that handles them alike.
	Statuses []StatusTable

	// unready are the services that AuthPolicies have asked and that have no endpoint.
	unready   *flow.Derived[ir.BackendKey, struct{}]
	uncounted *flow.Derived[topology.ListenerKey, int]
	// patched says of Gateways with patches for Envoy what has become of these.
	patched          *flow.Derived[object.Name, metav1.Condition]
	patches          *flow.Derived[object.Name, []envoy.Patch]
	patchedListeners *flow.Index[object.Name, ListenerAddress, patchedListener]
	patchedMembers   *flow.Index[object.Name, BackendKey, Member]
	patchedBundles   *flow.Index[object.Name, bundleKey, patchedBundle]
	// notices are what there is to say of objects that have no status of ours.
	notices     *flow.Derived[object.Name, source.Problem]
	undefaulted *flow.Derived[object.Key, source.Problem]
	// foreign are other implementations' policies, by file or, in a cluster, one by one; WithoutEffect are those that
	// target what is served here.
	foreign       *flow.Input[string, []foreign.Policy]
	WithoutEffect *flow.Derived[string, []WithoutEffect]
	unguarded     *flow.Derived[object.Name, []source.Problem]
}

// memory is what is remembered from one transaction to the next beside tables.
type memory struct {
	now             time.Time                          // as in clock
	refusals        map[object.Name]map[refusal]bool   // the keys of rejected, by Gateway
	marksSaid       map[object.Name]map[uint64]lacking // what proxies have said last of marks
	onOlderListener map[object.Name]bool               // Gateways of which a proxy goes on with an older listener
	gate            versionGate
	failures        failures
	pairs           pairs
	lastAsked       askedVersions
	// lastKeySets is askedVersions for key sets, see AskedKeySets.
	lastKeySets     uint64
	changedGateways []flow.Change[object.Name, *topology.Gateway] // since the last transaction with batches
}
