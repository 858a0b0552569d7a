package pipeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// Pipeline is the tables from inputs to resources and statuses, by stage, in the order in
// which a route goes through them. Those that the stages behind it read are exported; nobody
// else writes into them.
type Pipeline struct {
	Engine  *flow.Engine
	Options Options
	Kinds   *kind.Table

	Inputs  *topology.Inputs
	outside // what comes in beside objects
	Graph   *topology.Graph
	policed // what policies say, where it is in force
	hosts   // route tables, and what routes do in them
	ports   // listeners, and what clients connect to
	Resources
	fleets
	blueprints
	statuses

	afterResources      flow.Mark // tables from here on say nothing of what proxies are sent
	afterInfrastructure flow.Mark // nor these of what else is made for Gateways
	memory
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
		memory: memory{
			refusals: map[object.Name]map[refusal]bool{}, marksSaid: map[object.Name]map[uint64]lacking{}, onOlderListener: map[object.Name]bool{},
			pairs: pairs{last: map[object.Name]*topology.Certificate{}, until: map[object.Name]time.Time{}},
		},
	}
	p.clock = flow.NewInput[struct{}, time.Time](e, "clock")
	p.shards = newShards(e)
	p.demand = newDemand(e)
	p.proxies = flow.NewInput[object.Name, *answers](e, "proxies")
	p.withheld = flow.NewInput[object.Name, status.Withheld](e, "withheld", flow.Equal(flow.Same[status.Withheld]))
	p.rejected = flow.NewInput[refusal, status.Rejection](e, "refusals", flow.Equal(flow.Same[status.Rejection]))
	p.unextended = flow.NewInput[object.Name, []string](e, "without-extensions", flow.Equal(slices.Equal[[]string]))
	p.rejectedBy = flow.NewIndex(p.rejected, func(k refusal, _ status.Rejection, yield func(object.Name)) { yield(k.Gateway) }, refusal.compare)
	p.acknowledged = flow.NewInput[markKey, lacking](e, "acknowledged-marks", flow.Equal(flow.Same[lacking]))
	p.Problems = flow.NewInput[string, []source.Problem](e, "problems")
	p.places = flow.NewInput[string, []source.Place](e, "places")
	p.fleetStates = flow.NewInput[object.Name, infra.State](e, "fleet-states", flow.Equal(flow.Same[infra.State]))
	p.asked = flow.NewInput[object.Name, infra.Asked](e, "asked-of-fleets")
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
	p.afterResources = e.Declared()
	p.declareFeedback()
	if opts.Topology.Provisioned {
		p.declareCompiled()
	}
	p.declareInfra()
	p.declareKept()
	p.declareUsed()
	if opts.Topology.Provisioned {
		p.declareBlueprints()
	}
	p.afterInfrastructure = e.Declared()
	p.declareStatus()
	p.declarePolicyStatus()
	p.declareBackendTrafficStatus()
	p.declarePacked()
	p.declareTakenPaths()
	p.declareUnready()
	p.declareInheritedStatus()
	p.declareXBackendStatus()
	p.declareInferencePoolStatus()
	p.declareRouteFilterStatus()
	p.declareOtherStatus()
	p.declareAsked()
	p.declareReported()
	p.declareNotices()
	p.declareUndefaulted()
	p.declareUnguarded()
	p.declareForeign()
	flow.Watch(p.Graph.Classes)
	flow.Watch(p.Graph.Gateways)
	flow.Watch(p.Graph.Fleets)
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
	flow.Watch(p.WithoutEffect)
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
		for file, list := range b.Places {
			if len(list) == 0 {
				p.places.Delete(tx, file)
			} else {
				p.places.Set(tx, file, list)
			}
		}
		for file, list := range b.Foreign {
			if len(list) == 0 {
				p.foreign.Delete(tx, file)
			} else {
				p.foreign.Set(tx, file, list)
			}
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
	for _, list := range flow.All(c, p.WithoutEffect) {
		for _, notice := range ProblemsOf(list) {
			yield(notice)
		}
	}
}

// Places yields where objects stand that came from files.
func (p *Pipeline) Places(c *flow.Ctx, yield func(file string, at source.Place)) {
	for file, list := range flow.All(c, p.places) {
		for _, at := range list {
			yield(file, at)
		}
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
	p.declareTraffic()
	p.declareSessions()
	p.declarePorts()

	p.attachedByHost = flow.NewIndex(p.Graph.Attachments,
		func(k topology.AttachmentKey, a *topology.Attachment, yield func(ir.HostKey)) {
			table, ok := translate.RouteTable(k.Listener.Fleet(), a.Frontend)
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
			if at.prerouting {
				in.Prerouting = p.prerouting(c, entries)
			}
			p.guard(c, k.TableKey, at.guarded, &in, entries)
			p.limits.level(c, &in, entries, nil)
			// Where the table has people log in, it takes their cookies too, if nothing on the host is in its place.
			takes := at.login == loginPaths{} || in.Around != nil
			p.pass(c, k.TableKey, at.traffic, &in, entries)
			h := translate.Host(in)
			h.Verified = at.verified
			h.Sessions = takes && p.hasSessions(c, k)
			h.Rules = withLogins(h, at.login)
			return h, len(in.Entries) > 0
		})

	// A host that a listener owns and no route serves answers 404 itself, lest a
	// less specific host answers in its place.
	p.FallbackHosts = flow.Map("fallback-hosts", p.fallbacks,
		func(c *flow.Ctx, k ir.HostKey, misdirected bool, emit func(ir.HostKey, *ir.Host)) {
			if _, taken := flow.Get(c, p.Hosts, k); !taken {
				h := &ir.Host{Domain: k.Domain, Misdirected: misdirected}
				switch at, _ := flow.Get(c, p.fronts, k.TableKey); {
				case at.guarded:
					h.Around, h.Filters = p.around(c, k.TableKey), &ir.Filters{Access: &ir.Access{}}
				case at.traffic:
					h.Around = p.trafficAround(c, k.TableKey)
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
	traffic bool // the table says how requests and answers pass
	// prerouting says that a listener of the table has filters before routing.
	prerouting bool
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
