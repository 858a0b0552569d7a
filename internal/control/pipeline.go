package control

import (
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
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// Options are what a mode decides about a pipeline.
type Options struct {
	Topology topology.Options
	// Addresses are bound where a Gateway asks for none of its own.
	Addresses []string
	// Mode is who runs the proxies, and where.
	Mode features.Mode
}

// Pipeline is the tables from inputs to resources and statuses.
type Pipeline struct {
	engine *flow.Engine
	inputs *topology.Inputs
	graph  *topology.Graph
	opts   Options

	// What is not an object: the time, to the minute, and feedback.
	clock    *flow.Input[struct{}, time.Time]
	proxies  *flow.Input[object.Name, *status.ProxyState]
	rejected *flow.Input[refusal, status.Rejection]
	problems *flow.Input[string, []source.Problem]
	// fleetStates is what there is to say of provisioned fleets; few have an entry.
	fleetStates *flow.Input[object.Name, infra.State]
	refusals    map[object.Name]map[refusal]bool // the keys of rejected, by Gateway
	gate        versionGate
	lastAsked   askedVersions

	unsettled []flow.Change[object.Name, *topology.Gateway] // of the last transaction

	// Configuration.
	rules     *flow.Derived[object.Key, *routeRules]
	ports     *flow.Derived[portKey, *port]
	origins   *flow.Derived[ir.TableKey, tableOrigin]
	claims    *flow.Derived[ir.HostKey, bool]
	hosts     *flow.Derived[ir.HostKey, *ir.Host]
	vacant    *flow.Derived[ir.HostKey, *ir.Host]
	hostParts *flow.Derived[ir.HostKey, *hostPart]
	vacParts  *flow.Derived[ir.HostKey, *hostPart]
	forwards  *flow.Derived[ir.HostKey, *ir.Host]
	pools     *flow.Derived[resourceKey, member] // of UDP ports
	backends  *flow.Derived[string, *ir.Backend]

	// infra is what provisioned fleets follow from; nil where none are.
	infra *flow.Derived[object.Name, *infra.Gateway]
	kept  *flow.Derived[object.Name, *kept]
	// used says of our classes whether Gateways use them.
	used *flow.Derived[string, bool]
	// fleetServices are the Services in front of fleets, of former classes of a Gateway
	// too.
	fleetServices *flow.Index[object.Name, object.Name, *corev1.Service]

	// Resources, per Gateway.
	fleets     *flow.Derived[object.Name, struct{}]
	listeners  *flow.Derived[resourceKey, *envoy.Resource]
	tables     *flow.Derived[ir.TableKey, *envoy.Resource]
	members    *flow.Derived[resourceKey, member]
	collectors *flow.Derived[resourceKey, *envoy.Resource]
	secrets    *flow.Derived[resourceKey, *envoy.Resource]

	policyStatus   *flow.Derived[object.Name, *gwv1.PolicyStatus]
	trafficStatus  *flow.Derived[object.Name, *gwv1.PolicyStatus]
	xBackendStatus *flow.Derived[object.Name, *gwxv1alpha1.BackendStatus]

	// Status.
	classStatus   *flow.Derived[string, *gwv1.GatewayClassStatus]
	gatewayStatus *flow.Derived[object.Name, *gwv1.GatewayStatus]
	setStatus     *flow.Derived[object.Name, *gwv1.ListenerSetStatus]
	routeStatus   *flow.Derived[object.Key, *gwv1.RouteStatus]

	reported []reported

	uncounted *flow.Derived[topology.ListenerKey, int]
	notices   *flow.Derived[object.Name, source.Problem]

	undefaulted *flow.Derived[object.Key, source.Problem]

	// Orders that several tables read by.
	attachedByHost *flow.Index[ir.HostKey, topology.AttachmentKey, *topology.Attachment]
	hostsByBackend *flow.Index[resourceKey, ir.HostKey, *ir.Host]
}

// resourceKey names a resource of one Gateway.
type resourceKey struct {
	Gateway object.Name
	Name    string
}

func (k resourceKey) String() string { return k.Gateway.String() + "/" + k.Name }

// NewPipeline declares the tables.
func NewPipeline(opts Options) *Pipeline {
	e := flow.New()
	p := &Pipeline{engine: e, opts: opts, refusals: map[object.Name]map[refusal]bool{}}
	p.clock = flow.NewInput[struct{}, time.Time](e, "clock")
	p.proxies = flow.NewInput[object.Name, *status.ProxyState](e, "proxies")
	p.rejected = flow.NewInput[refusal, status.Rejection](e, "refusals", flow.Equal(flow.Same[status.Rejection]))
	p.problems = flow.NewInput[string, []source.Problem](e, "problems")
	p.fleetStates = flow.NewInput[object.Name, infra.State](e, "fleet-states", flow.Equal(flow.Same[infra.State]))
	p.inputs = topology.NewInputs(e)
	p.graph = topology.New(e, p.inputs, opts.Topology)
	p.declareHosts()
	p.declareResources()
	p.declareInfra()
	p.declareKept()
	p.declareUsed()
	p.declareStatus()
	p.declarePolicyStatus()
	p.declareTrafficStatus()
	p.declareXBackendStatus()
	p.declareReported()
	p.declareNotices()
	p.declareUndefaulted()
	flow.Watch(p.graph.Gateways)
	flow.Watch(p.fleets)
	flow.Watch(p.listeners)
	flow.Watch(p.tables)
	flow.Watch(p.members)
	flow.Watch(p.collectors)
	flow.Watch(p.secrets)
	flow.Watch(p.problems)
	return p
}

// Engine gives access to the tables, for printing them.
func (p *Pipeline) Engine() *flow.Engine { return p.engine }

// Apply runs one transaction with batches from sources.
func (p *Pipeline) Apply(batches ...source.Batch) *flow.Commit {
	return p.engine.Update(func(tx *flow.Tx) { p.apply(tx, batches) })
}

// asked returns the Secrets and ConfigMaps that the tables look for, unless they are
// those of the last call: most transactions ask for nothing new, and looking through
// what thousands of listeners ask for would cost more than many of them.
func (p *Pipeline) asked() (secrets, configMaps []object.Name, changed bool) {
	p.engine.View(func(*flow.Ctx) {
		now := askedVersions{p.inputs.Secrets.AskedVersion(), p.inputs.ConfigMaps.AskedVersion()}
		if changed = now != p.lastAsked; changed {
			p.lastAsked = now
			secrets, configMaps = slices.Collect(p.inputs.Secrets.Asked), slices.Collect(p.inputs.ConfigMaps.Asked)
		}
	})
	return secrets, configMaps, changed
}

// askedVersions tell what is asked for from what was.
type askedVersions struct{ secrets, configMaps uint64 }

func (p *Pipeline) apply(tx *flow.Tx, batches []source.Batch) {
	p.settle(tx)
	for _, b := range batches {
		b = p.gate.take(b)
		for _, o := range p.inputs.Apply(tx, b) {
			p.problems.Set(tx, unsupported(source.KeyOf(o)), []source.Problem{{
				Key: source.KeyOf(o), Reason: source.Unknown,
				Message: "this kind is not supported by this version of Gatehouse; the object has no effect",
			}})
		}
		for _, k := range b.Deleted {
			p.problems.Delete(tx, unsupported(k))
		}
		for file, list := range b.Problems {
			if len(list) == 0 {
				p.problems.Delete(tx, file)
			} else {
				p.problems.Set(tx, file, list)
			}
		}
	}
}

// unsupported is the key under which an object without effect stands among the
// problems of files.
func unsupported(k object.Key) string { return "\x00" + k.String() }

// declareHosts declares what lies between attachments and virtual hosts.
func (p *Pipeline) declareHosts() {
	p.rules = flow.Map("rules", p.graph.Routes,
		func(_ *flow.Ctx, k object.Key, r *topology.Route, emit func(object.Key, *routeRules)) {
			rules := translate.Route(r)
			emit(k, &routeRules{rules, r.Object.GetCreationTimestamp().Time, status.NoRuleLeft(r, rules.Problems)})
		})

	p.declarePorts()
	p.declareForwards()
	p.declarePools()

	p.attachedByHost = flow.NewIndex(p.graph.Attachments,
		func(k topology.AttachmentKey, a *topology.Attachment, yield func(ir.HostKey)) {
			if a.Table == "" {
				return // ports read it
			}
			for _, h := range a.Hosts {
				yield(ir.HostKey{TableKey: ir.TableKey{Gateway: k.Listener.Gateway, Table: a.Table}, Domain: h.Domain})
			}
		}, topology.AttachmentKey.Compare)
	p.hosts = flow.Group("hosts", p.attachedByHost,
		func(c *flow.Ctx, k ir.HostKey, attached flow.Members[topology.AttachmentKey, *topology.Attachment]) (*ir.Host, bool) {
			at, ok := flow.Get(c, p.origins, k.TableKey)
			if !ok {
				return nil, false // the listener went in this very transaction
			}
			in := translate.HostInput{
				Domain: k.Domain, Port: at.port, HTTPS: at.https, Offset: p.opts.Topology.ClientOffset(),
				Entries: make([]translate.HostEntry, 0, attached.Len()),
			}
			for key, a := range attached.All() {
				rules, ok := flow.Get(c, p.rules, key.Route)
				if !ok {
					continue
				}
				i := slices.IndexFunc(a.Hosts, func(h topology.AttachedHost) bool { return h.Domain == k.Domain })
				in.Entries = append(in.Entries, translate.HostEntry{
					Route: key.Route, Hostname: a.Hosts[i].Hostname, Created: rules.created, Rules: rules.Rules.Rules,
				})
			}
			return translate.Host(in), true
		})

	// A host that a listener owns and no route serves answers 404 itself, lest a
	// less specific host answers in its place.
	p.vacant = flow.Map("vacant-hosts", p.claims,
		func(c *flow.Ctx, k ir.HostKey, misdirected bool, emit func(ir.HostKey, *ir.Host)) {
			if _, taken := flow.Get(c, p.hosts, k); !taken {
				emit(k, &ir.Host{Domain: k.Domain, Misdirected: misdirected})
			}
		})
}

// routeRules is a route's translation.
type routeRules struct {
	translate.Rules
	created time.Time // the older of two equals wins
	invalid bool      // no rule is left
}

// tableOrigin is what a host needs to know of the listener in front of it.
type tableOrigin struct {
	port  uint16
	https bool
}
