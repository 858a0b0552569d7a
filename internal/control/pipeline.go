package control

import (
	"cmp"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
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
	// PortOffset is added to every listener's port.
	PortOffset int
}

// Pipeline is the tables from inputs to resources and statuses.
type Pipeline struct {
	engine *flow.Engine
	inputs *topology.Inputs
	graph  *topology.Graph
	opts   Options

	// What is not an object: the time, to the minute, and feedback.
	clock    *flow.Input[struct{}, time.Time]
	proxies  *flow.Input[ir.Name, *status.ProxyState]
	rejected *flow.Input[refusal, status.Rejection]
	problems *flow.Input[string, []source.Problem]
	refusals map[ir.Name]map[refusal]bool // the keys of rejected, by Gateway

	// Configuration.
	rules     *flow.Derived[topology.RouteKey, *routeRules]
	entries   *flow.Derived[entryKey, string]
	ports     *flow.Derived[portKey, *port]
	origins   *flow.Derived[ir.TableKey, tableOrigin]
	claims    *flow.Derived[ir.HostKey, bool]
	hosts     *flow.Derived[ir.HostKey, *ir.Host]
	vacant    *flow.Derived[ir.HostKey, *ir.Host]
	hostParts *flow.Derived[ir.HostKey, *hostPart]
	vacParts  *flow.Derived[ir.HostKey, *hostPart]
	backends  *flow.Derived[string, *ir.Backend]

	// Resources, per Gateway.
	fleets    *flow.Derived[ir.Name, struct{}]
	listeners *flow.Derived[resourceKey, *envoy.Resource]
	tables    *flow.Derived[ir.TableKey, *envoy.Resource]
	members   *flow.Derived[resourceKey, member]
	secrets   *flow.Derived[resourceKey, *envoy.Resource]

	// Status.
	classStatus   *flow.Derived[string, *gwv1.GatewayClassStatus]
	gatewayStatus *flow.Derived[ir.Name, *gwv1.GatewayStatus]
	routeStatus   *flow.Derived[topology.RouteKey, *gwv1.HTTPRouteStatus]

	uncounted *flow.Derived[topology.ListenerKey, int]
	notices   *flow.Derived[ir.Name, source.Problem]

	// Orders that several tables read by.
	entriesByHost  *flow.Index[ir.HostKey, entryKey, string]
	hostsByBackend *flow.Index[resourceKey, ir.HostKey, *ir.Host]
}

// resourceKey names a resource of one Gateway.
type resourceKey struct {
	Gateway ir.Name
	Name    string
}

func (k resourceKey) String() string { return k.Gateway.String() + "/" + k.Name }

// entryKey is a route on a host.
type entryKey struct {
	Host  ir.HostKey
	Route topology.RouteKey
}

func (k entryKey) String() string { return k.Host.String() + " " + k.Route.String() }

func compareEntries(a, b entryKey) int {
	return cmp.Or(a.Host.Compare(b.Host), a.Route.Compare(b.Route))
}

// NewPipeline declares the tables.
func NewPipeline(opts Options) *Pipeline {
	e := flow.New()
	p := &Pipeline{engine: e, opts: opts, refusals: map[ir.Name]map[refusal]bool{}}
	p.clock = flow.NewInput[struct{}, time.Time](e, "clock")
	p.proxies = flow.NewInput[ir.Name, *status.ProxyState](e, "proxies")
	p.rejected = flow.NewInput[refusal, status.Rejection](e, "refusals", flow.Equal(flow.Same[status.Rejection]))
	p.problems = flow.NewInput[string, []source.Problem](e, "problems")
	p.inputs = topology.NewInputs(e)
	p.graph = topology.New(e, p.inputs, opts.Topology)
	p.declareHosts()
	p.declareResources()
	p.declareStatus()
	p.declareNotices()
	flow.Watch(p.fleets)
	flow.Watch(p.listeners)
	flow.Watch(p.tables)
	flow.Watch(p.members)
	flow.Watch(p.secrets)
	flow.Watch(p.classStatus)
	flow.Watch(p.gatewayStatus)
	flow.Watch(p.routeStatus)
	flow.Watch(p.problems)
	return p
}

// Engine gives access to the tables, for printing them.
func (p *Pipeline) Engine() *flow.Engine { return p.engine }

// Apply runs one transaction with batches from sources.
func (p *Pipeline) Apply(batches ...source.Batch) *flow.Commit {
	return p.engine.Update(func(tx *flow.Tx) { p.apply(tx, batches) })
}

func (p *Pipeline) apply(tx *flow.Tx, batches []source.Batch) {
	for _, b := range batches {
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
func unsupported(k source.Key) string { return "\x00" + k.String() }

// declareHosts declares what lies between attachments and virtual hosts.
func (p *Pipeline) declareHosts() {
	p.rules = flow.Map("rules", p.graph.Routes,
		func(_ *flow.Ctx, k topology.RouteKey, r *topology.Route, emit func(topology.RouteKey, *routeRules)) {
			emit(k, &routeRules{translate.Route(r), r.Object.CreationTimestamp.Time})
		})

	p.entries = flow.Map("host-entries", p.graph.Attachments,
		func(_ *flow.Ctx, k topology.AttachmentKey, a *topology.Attachment, emit func(entryKey, string)) {
			for _, h := range a.Hosts {
				host := ir.HostKey{TableKey: ir.TableKey{Gateway: k.Listener.Gateway, Table: a.Table}, Domain: h.Domain}
				emit(entryKey{host, k.Route}, h.Hostname)
			}
		}, flow.Equal(flow.Same[string]))

	p.declarePorts()

	p.entriesByHost = flow.NewIndex(p.entries,
		func(k entryKey, _ string, yield func(ir.HostKey)) { yield(k.Host) }, compareEntries)
	p.hosts = flow.Group("hosts", p.entriesByHost,
		func(c *flow.Ctx, k ir.HostKey, entries flow.Members[entryKey, string]) (*ir.Host, bool) {
			at, ok := flow.Get(c, p.origins, k.TableKey)
			if !ok {
				return nil, false // the listener went in this very transaction
			}
			in := translate.HostInput{
				Domain: k.Domain, Port: at.port, HTTPS: at.https, Offset: p.opts.PortOffset,
				Entries: make([]translate.HostEntry, 0, entries.Len()),
			}
			for entry, hostname := range entries.All() {
				rules, ok := flow.Get(c, p.rules, entry.Route)
				if !ok {
					continue
				}
				in.Entries = append(in.Entries, translate.HostEntry{
					Route: entry.Route, Hostname: hostname, Created: rules.created, Rules: rules.Rules.Rules,
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

// routeRules is a route's translation, with the age that decides between equals.
type routeRules struct {
	translate.Rules
	created time.Time
}

// tableOrigin is what a host needs to know of the listener in front of it.
type tableOrigin struct {
	port  uint16
	https bool
}
