package pipeline

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// Pipeline is the tables from inputs to resources and statuses. Those that the stages
// behind it read are exported; nobody else writes into them.
type Pipeline struct {
	Engine  *flow.Engine
	Inputs  *topology.Inputs
	Graph   *topology.Graph
	Options Options
	Kinds   *kind.Table
	told    flow.Mark // tables from here on say nothing of what proxies are sent
	made    flow.Mark // nor these of what else is made for Gateways

	// What is not an object: the time, to the minute, and feedback.
	clock    *flow.Input[struct{}, time.Time]
	proxies  *flow.Input[object.Name, *answers]
	rejected *flow.Input[refusal, status.Rejection]
	withheld *flow.Input[object.Name, status.Withheld] // see TakeWithheld
	// acknowledged are the marks that the proxies of Gateways have, see declareCarried, and
	// marksSaid what they have said last.
	acknowledged *flow.Input[markKey, lacking]
	marksSaid    map[object.Name]map[uint64]lacking
	// Problems are what sources say of inputs, by file or by object.
	Problems *flow.Input[string, []source.Problem]
	// fleetStates is what there is to say of provisioned fleets; few have an entry.
	fleetStates *flow.Input[object.Name, infra.State]
	refusals    map[object.Name]map[refusal]bool // the keys of rejected, by Gateway
	gate        versionGate
	failures    failures
	lastAsked   askedVersions
	// lastKeySets is askedVersions for key sets, see AskedKeySets.
	lastKeySets uint64

	shards *shards
	demand *demand
	owing  map[object.Name]bool // Gateways of which a proxy goes on with an older listener

	changedGateways []flow.Change[object.Name, *topology.Gateway] // since the last transaction with batches
	pairs           pairs
	now             time.Time // as in clock

	// Configuration.
	rules        *flow.Derived[object.Key, *routeRules]
	portFilters  flow.Table[PortKey, *ir.Filters]
	portPolicies flow.Table[PortKey, []object.Key]
	marks        map[object.Kind]flow.Table[object.Key, uint64] // of policies, by their kinds
	carried      flow.Table[object.Name, *[]uint64]
	// How requests are counted, and RateLimits, which say how many are let through, by the
	// filters that count.
	listenerLimits, setListenerLimits flow.Table[topology.ListenerKey, *ir.RateLimits]
	routeLimits                       flow.Table[topology.AttachmentKey, *routeLimits]
	limitsBySlot                      *flow.Index[LimitSlot, limitKey, struct{}]
	RateLimits                        *flow.Derived[LimitSlot, []ir.RateLimit]
	SharedLimits                      *flow.Derived[object.Name, struct{}] // Gateways whose proxies count together
	// portSettings are ports without chains and filters. Ports have all that are listed in the proxies' listener.
	portSettings  flow.Table[PortKey, *ir.Listener]
	tableChains   flow.Table[ir.TableKey, tableChain]
	listedChains  flow.Table[ir.TableKey, tableChain]
	forwardChains flow.Table[PortKey, []ir.Chain]
	Ports         *flow.Derived[PortKey, *ir.Listener]
	RouteTables   *flow.Derived[ir.TableKey, TableFront]
	fronts        flow.Table[ir.TableKey, hostFront]
	fallbacks     *flow.Derived[ir.HostKey, bool]
	sessions      flow.Table[sessionHost, struct{}]
	Hosts         *flow.Derived[ir.HostKey, *ir.Host]
	// Sharded are the tables that are in several route configurations, or could be.
	Sharded        *flow.Derived[ir.TableKey, Sharding]
	configurations *flow.Derived[ResourceKey, configuration]
	// OnDemand are the ports that serve certificates on demand, or could.
	OnDemand        *flow.Derived[PortKey, bool]
	onDemandClients flow.Table[PortKey, clients]
	onDemandHosts   *flow.Derived[ir.TableKey, onDemandHost]
	onDemandNames   *flow.Derived[ResourceKey, ir.SecretKey]
	// FallbackHosts are the hosts that have an answer although no route serves them.
	FallbackHosts *flow.Derived[ir.HostKey, *ir.Host]
	hostParts     *flow.Derived[ir.HostKey, hostPart]
	fallbackParts *flow.Derived[ir.HostKey, hostPart]
	forwards      *flow.Derived[ir.HostKey, *ir.Host]
	tablesAsking  *flow.Derived[ir.HostKey, *ir.Host] // see tableServices
	sockets       flow.Table[socket, struct{}]        // see declareSockets
	overBudget    *flow.Derived[routeAt, overrun]     // of regular expressions
	overQuota     *flow.Derived[routeAt, overrun]     // of namespaces
	crowded       flow.Table[Tenant, struct{}]        // who has routes over quota
	tenants       flow.Table[Tenant, tenantUsage]
	pools         *flow.Derived[BackendKey, Member] // of UDP ports

	// Infrastructure is what provisioned fleets follow from; nil where none are.
	Infrastructure *flow.Derived[object.Name, *infra.Gateway]
	// Kept is what is to outlive this process, see parameters.Kept.
	Kept *flow.Derived[object.Name, *parameters.Kept]
	// UsedClasses says of our classes whether Gateways use them.
	UsedClasses *flow.Derived[string, bool]

	// fleetServices are the Services in front of fleets, of former classes of a Gateway
	// too.
	fleetServices *flow.Index[object.Name, object.Name, *corev1.Service]

	// Fleets are the Gateways that have proxies.
	Fleets *flow.Derived[object.Name, struct{}]
	// Resources, per Gateway.
	Listeners           *flow.Derived[ListenerAddress, *envoy.Resource]
	Scopes              *flow.Derived[ResourceKey, *envoy.Resource]
	RouteConfigurations *flow.Derived[ResourceKey, *envoy.Resource]
	TableAccess         *flow.Derived[ResourceKey, TableAccess]
	LimitFilters        *flow.Derived[ResourceKey, *envoy.Resource]
	Forwarders          *flow.Derived[ResourceKey, Forwarder]
	Members             *flow.Derived[BackendKey, Member]
	Collectors          *flow.Derived[ResourceKey, *envoy.Resource]
	Secrets             *flow.Derived[SecretKey, *envoy.Resource]

	// Status.
	proxyStates            *flow.Derived[object.Name, *status.ProxyState]
	ClassStatus            *flow.Derived[string, *gwv1.GatewayClassStatus]
	GatewayStatus          *flow.Derived[object.Name, *gwv1.GatewayStatus]
	ListenerSetStatus      *flow.Derived[object.Name, *gwv1.ListenerSetStatus]
	RouteStatus            *flow.Derived[object.Key, *gwv1.RouteStatus]
	BackendTLSPolicyStatus *flow.Derived[object.Name, *gwv1.PolicyStatus]
	TrafficPolicyStatus    *flow.Derived[object.Name, *gwv1.PolicyStatus]
	AuthPolicyStatus       *flow.Derived[object.Name, *gwv1.PolicyStatus]
	RateLimitPolicyStatus  *flow.Derived[object.Name, *gwv1.PolicyStatus]
	XBackendStatus         *flow.Derived[object.Name, *gwxv1alpha1.BackendStatus]
	// OtherStatus is that of objects of kinds that nothing else depends on.
	OtherStatus *flow.Derived[object.Key, any]
	// Statuses are the tables of statuses, for all that handles them alike.
	Statuses []StatusTable

	uncounted *flow.Derived[topology.ListenerKey, int]
	// notices are what there is to say of objects that have no status of ours.
	notices     *flow.Derived[object.Name, source.Problem]
	undefaulted *flow.Derived[object.Key, source.Problem]
	unguarded   *flow.Derived[object.Name, []source.Problem]

	// Orders that several tables read by.
	attachedByHost *flow.Index[ir.HostKey, topology.AttachmentKey, *topology.Attachment]
	hostsByBackend *flow.Index[BackendKey, ir.HostKey, *ir.Host]
	packed         *flow.Index[policyAt, packing, struct{}]
	takenPaths     *flow.Index[pathAt, takenPath, struct{}]
	rejectedBy     *flow.Index[object.Name, refusal, status.Rejection] // by Gateway
	byClusterName  *flow.Index[nameBucket, BackendKey, Member]
}

// ResourceKey names a resource of one Gateway.
type ResourceKey struct {
	Gateway object.Name
	Name    string
}

func (k ResourceKey) String() string { return k.Gateway.String() + "/" + k.Name }

// New declares the tables.
func New(opts Options) *Pipeline {
	e := flow.New()
	p := &Pipeline{
		Engine: e, Options: opts, Kinds: cmp.Or(opts.Kinds, kind.All),
		refusals: map[object.Name]map[refusal]bool{}, marksSaid: map[object.Name]map[uint64]lacking{}, owing: map[object.Name]bool{},
		pairs: pairs{last: map[object.Name]*topology.Certificate{}, until: map[object.Name]time.Time{}},
	}
	p.clock = flow.NewInput[struct{}, time.Time](e, "clock")
	p.shards = newShards(e)
	p.demand = newDemand(e)
	p.proxies = flow.NewInput[object.Name, *answers](e, "proxies")
	p.withheld = flow.NewInput[object.Name, status.Withheld](e, "withheld", flow.Equal(flow.Same[status.Withheld]))
	p.rejected = flow.NewInput[refusal, status.Rejection](e, "refusals", flow.Equal(flow.Same[status.Rejection]))
	p.rejectedBy = flow.NewIndex(p.rejected, func(k refusal, _ status.Rejection, yield func(object.Name)) { yield(k.Gateway) }, refusal.compare)
	p.acknowledged = flow.NewInput[markKey, lacking](e, "acknowledged-marks", flow.Equal(flow.Same[lacking]))
	p.Problems = flow.NewInput[string, []source.Problem](e, "problems")
	p.fleetStates = flow.NewInput[object.Name, infra.State](e, "fleet-states", flow.Equal(flow.Same[infra.State]))
	p.Inputs = topology.NewInputs(e, p.Kinds)
	if opts.Topology.AnyName { // elsewhere messages don't tell of files
		p.Inputs.Broken = p.declareBroken()
	}
	// Where somebody else runs the proxies there are no fleets: a Service that looks like
	// that of one tells nothing.
	if opts.Topology.Provisioned && opts.Mode != features.Unmanaged {
		p.declareFleetServices()
	}
	p.Graph = topology.New(e, p.Inputs, opts.Topology)
	p.declareHosts()
	p.declareCarried()
	p.declareResources()
	p.told = e.Declared()
	p.declareFeedback()
	p.declareInfra()
	p.declareKept()
	p.declareUsed()
	p.made = e.Declared()
	p.declareStatus()
	p.declarePolicyStatus()
	p.declareTrafficStatus()
	p.declarePacked()
	p.declareTakenPaths()
	p.declareInheritedStatus()
	p.declareXBackendStatus()
	p.declareOtherStatus()
	p.declareReported()
	p.declareNotices()
	p.declareUndefaulted()
	p.declareUnguarded()
	flow.Watch(p.Graph.Classes)
	flow.Watch(p.Graph.Gateways)
	flow.Watch(p.Graph.OrphanSets)
	flow.Watch(p.Graph.Certificates)
	flow.Watch(p.Fleets)
	flow.Watch(p.Listeners)
	flow.Watch(p.Sharded)
	flow.Watch(p.OnDemand)
	flow.Watch(p.Scopes)
	flow.Watch(p.RouteConfigurations)
	flow.Watch(p.TableAccess)
	flow.Watch(p.LimitFilters)
	flow.Watch(p.Forwarders)
	flow.Watch(p.Members)
	flow.Watch(p.Collectors)
	flow.Watch(p.Secrets)
	flow.Watch(p.Problems)
	return p
}

// Apply runs one transaction with batches from sources.
func (p *Pipeline) Apply(batches ...source.Batch) *flow.Commit {
	return p.Update(func(tx *flow.Tx) { p.Take(tx, batches) })
}

// Update runs one transaction. Updates says what of it proxies must be told.
func (p *Pipeline) Update(change func(*flow.Tx)) *flow.Commit {
	return p.Engine.Update(change)
}

// Tick takes in what time it is. Statuses speak of minutes: certificates expire.
func (p *Pipeline) Tick(tx *flow.Tx, now time.Time) {
	p.now = now.Truncate(time.Minute)
	p.clock.Set(tx, struct{}{}, p.now)
}

// Asked returns the Secrets and ConfigMaps that the tables look for, unless they are
// those of the last call: most transactions ask for nothing new, and looking through
// what thousands of listeners ask for would cost more than many of them.
func (p *Pipeline) Asked() (secrets, configMaps []object.Name, changed bool) {
	p.Engine.View(func(*flow.Ctx) {
		now := askedVersions{p.Inputs.Secrets.AskedVersion(), p.Inputs.ConfigMaps.AskedVersion()}
		if changed = now != p.lastAsked; changed {
			p.lastAsked = now
			secrets, configMaps = slices.Collect(p.Inputs.Secrets.Asked), slices.Collect(p.Inputs.ConfigMaps.Asked)
		}
	})
	return secrets, configMaps, changed
}

// askedVersions tell what is asked for from what was.
type askedVersions struct{ secrets, configMaps uint64 }

// Take takes in batches from sources.
func (p *Pipeline) Take(tx *flow.Tx, batches []source.Batch) {
	p.keep(tx)
	p.keepShards(tx)
	p.keepDemand(tx)
	p.keepCertificates(tx)
	for _, b := range batches {
		b = p.gate.take(b)
		p.noteSecrets(tx, b)
		for _, o := range p.Inputs.Apply(tx, b) {
			p.Problems.Set(tx, unsupported(source.KeyOf(o)), []source.Problem{{
				Key: source.KeyOf(o), Reason: source.Unknown,
				Message: "this kind is not supported by this version of Gatehouse; the object has no effect",
			}})
		}
		for _, k := range b.Deleted {
			p.Problems.Delete(tx, unsupported(k))
		}
		for file, list := range b.Problems {
			if len(list) == 0 {
				p.Problems.Delete(tx, file)
			} else {
				p.Problems.Set(tx, file, list)
			}
		}
	}
}

// AllProblems yields what is wrong with inputs, and what there is to say of objects
// that have no status of ours.
func (p *Pipeline) AllProblems(c *flow.Ctx, yield func(source.Problem)) {
	for _, list := range flow.All(c, p.Problems) {
		for _, problem := range list {
			yield(problem)
		}
	}
	for _, notice := range flow.All(c, p.notices) {
		yield(notice)
	}
	for _, notice := range flow.All(c, p.undefaulted) {
		yield(notice)
	}
	for _, list := range flow.All(c, p.unguarded) {
		for _, notice := range list {
			yield(notice)
		}
	}
	for k, message := range flow.All(c, p.Graph.Untold) {
		yield(source.Problem{Key: k.Route, Field: "spec.hostnames", Reason: source.Duplicate, Message: message})
	}
}

// Prepare does of a batch's work what needs no table. Sources' goroutines call it before
// they hand over a batch, so that transactions don't wait for it.
func Prepare(b source.Batch) {
	for _, o := range b.Set {
		translate.Prepare(o)
	}
}

// unsupported is the key under which an object without effect stands among the
// problems of files.
func unsupported(k object.Key) string { return "\x00" + k.String() }

// declareHosts declares what lies between attachments and virtual hosts.
func (p *Pipeline) declareHosts() {
	p.rules = flow.Map("rules", p.Graph.Routes,
		func(_ *flow.Ctx, k object.Key, r *topology.Route, emit func(object.Key, *routeRules)) {
			rules := translate.Route(r)
			emit(k, budgeted(&routeRules{
				Rules: rules, created: r.Object.GetCreationTimestamp().Time, invalid: status.NoRuleLeft(r, rules.Problems),
			}))
		})
	p.declareRegexBudgets()
	p.declareQuotas()

	p.declareRateLimits()
	p.declareSessions()
	p.declarePorts()

	p.attachedByHost = flow.NewIndex(p.Graph.Attachments,
		func(k topology.AttachmentKey, a *topology.Attachment, yield func(ir.HostKey)) {
			table, ok := translate.RouteTable(k.Listener.Gateway(), a.Frontend)
			if !ok {
				return // ports read it
			}
			for _, h := range a.Hosts {
				yield(ir.HostKey{TableKey: table, Domain: h.Domain})
			}
		}, topology.AttachmentKey.Compare)
	p.Hosts = flow.Group("hosts", p.attachedByHost,
		func(c *flow.Ctx, k ir.HostKey, attached flow.Members[topology.AttachmentKey, *topology.Attachment]) (*ir.Host, bool) {
			at, ok := flow.Get(c, p.fronts, k.TableKey)
			if !ok {
				return nil, false // the listener went in this very transaction
			}
			in := translate.HostInput{
				Domain: k.Domain, Port: at.port, HTTPS: at.https, Offset: p.Options.Topology.ClientOffset(),
				Entries: make([]translate.HostEntry, 0, attached.Len()),
			}
			entries := make([]topology.AttachmentKey, 0, 4)
			for key, a := range attached.All() {
				rules, ok := flow.Get(c, p.rules, key.Route)
				if !ok {
					continue
				}
				served, ok := p.within(c, k.Gateway(), key.Route, rules)
				if !ok {
					continue
				}
				i := slices.IndexFunc(a.Hosts, func(h topology.AttachedHost) bool { return h.Domain == k.Domain })
				in.Entries = append(in.Entries, translate.HostEntry{
					Route: key.Route, Hostname: a.Hosts[i].Hostname, Created: rules.created, Rules: served,
				})
				entries = append(entries, key)
			}
			p.guard(c, k.TableKey, at.guarded, &in, entries)
			p.count(c, &in, entries)
			h := translate.Host(in)
			h.Verified = at.verified
			// Where the table has people log in, it takes their cookies too, if nothing on the host is in its place.
			h.Sessions = (at.login == loginPaths{} || h.Around != nil) && p.hasSessions(c, k)
			h.Rules = withLogins(h, at.login)
			return h, len(in.Entries) > 0
		})

	// A host that a listener owns and no route serves answers 404 itself, lest a
	// less specific host answers in its place.
	p.FallbackHosts = flow.Map("fallback-hosts", p.fallbacks,
		func(c *flow.Ctx, k ir.HostKey, misdirected bool, emit func(ir.HostKey, *ir.Host)) {
			if _, taken := flow.Get(c, p.Hosts, k); !taken {
				h := &ir.Host{Domain: k.Domain, Misdirected: misdirected}
				if at, _ := flow.Get(c, p.fronts, k.TableKey); at.guarded {
					h.Around, h.Filters = p.around(c, k.TableKey), &ir.Filters{Access: &ir.Access{}}
				}
				emit(k, h)
			}
		})
}

// routeRules is a route's translation.
type routeRules struct {
	translate.Rules
	created time.Time // the older of two equals wins
	invalid bool      // no rule is left
	// program is how many instructions the regular expressions have on each host, and closed
	// the rules in place of these where that is too much; nil without expressions.
	program int
	closed  []*ir.Rule
}

// hostFront is what every host needs to know of the listener in front of it.
type hostFront struct {
	port    uint16
	https   bool
	guarded bool // the table says who may pass
	// verified says that all clients need certificates.
	verified bool
	login    loginPaths
}

// TableFront is what a route table needs to know of the listener in front of it.
type TableFront struct {
	at    PortKey
	port  uint16
	https bool
	// verified says that all clients need certificates.
	verified bool
	filters  *ir.Filters // of the listener
}
