package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// This file decides which ports serve certificates on demand, and of which hosts, see package envoy.

// defaultOnDemandAbove is the number of certificates of a port from which on it pays to have proxies ask for
// them: one more then costs a proxy 40 ms, and is 50 kB to send.
const defaultOnDemandAbove = 128

// onDemandHost is a host of a port that serves certificates on demand, or has done so lately. Its route table
// is found by its server name.
type onDemandHost struct {
	port     PortKey
	listener string // ir.Listener.Name
	hostname string
	// certificate is what proxies get when they ask for the host; zero for a host that has a chain of its
	// own, and may have connections from before it had that.
	certificate ir.SecretKey
	spare       bool // only connections that drain use it
}

// claimedHost is a host that a proxy found by its server name when it connected, while its port is not on demand.
type claimedHost struct {
	port     PortKey
	onDemand bool // it had certificates by server names
}

// clients is how a port checks the certificates of clients, as a value.
type clients struct {
	asked bool
	ir.Clients
}

func clientsOf(c *ir.Clients) clients {
	if c == nil {
		return clients{}
	}
	return clients{true, *c}
}

func (c clients) orNil() *ir.Clients {
	if !c.asked {
		return nil
	}
	return &c.Clients
}

// portClients are the clients of a port.
type portClients struct {
	PortKey
	clients
}

func (k portClients) compare(o portClients) int {
	return cmp.Or(k.PortKey.compare(o.PortKey), k.Authorities.Compare(o.Authorities),
		strings.Compare(fmt.Sprint(k.clients), fmt.Sprint(o.clients)))
}

// demand remembers which ports serve certificates on demand.
type demand struct {
	changed []flow.Change[PortKey, bool] // since the last transaction with batches
	until   map[PortKey]time.Time        // for which scopes are kept
	// were are the ports that did it in the last transaction with batches, and leaving those that don't any
	// more, or perhaps don't any more, and have connections that drain.
	were    *flow.Input[PortKey, struct{}]
	leaving *flow.Input[PortKey, struct{}]
}

func newDemand(e *flow.Engine) *demand {
	return &demand{
		until:   map[PortKey]time.Time{},
		were:    flow.NewInput[PortKey, struct{}](e, "were-on-demand", flow.Equal(flow.Same[struct{}])),
		leaving: flow.NewInput[PortKey, struct{}](e, "leave-on-demand", flow.Equal(flow.Same[struct{}])),
	}
}

// declareOnDemand declares what is served on demand.
func (p *Pipeline) declareOnDemand() {
	claimed := p.declareClaimedPorts()
	wide := flow.NewIndex(p.tableChains, func(_ ir.TableKey, v tableChain, yield func(PortKey)) {
		if v.chain.TLS != nil && translate.IsWide(&v.chain) {
			yield(v.port)
		}
	}, ir.TableKey.Compare)
	wideNames := flow.Map("wide-hostnames", p.portSettings,
		func(c *flow.Ctx, k PortKey, _ *ir.Listener, emit func(PortKey, []string)) {
			var out []string
			for _, v := range flow.Select(c, wide, k).All() {
				out = append(out, v.chain.Hostname)
			}
			forwards, _ := flow.Get(c, p.forwardChains, k)
			for i := range forwards {
				if translate.IsWide(&forwards[i]) {
					out = append(out, forwards[i].Hostname)
				}
			}
			slices.Sort(out)
			emit(k, out)
		}, flow.Equal(slices.Equal[[]string]))
	// Certificates of clients are a port's. Should two hosts differ for all that, they don't share a chain.
	asked := flow.Keys("clients-of-hosts", func(_ ir.TableKey, v tableChain, yield func(portClients)) {
		if translate.FitsOnDemand(&v.chain) {
			yield(portClients{v.port, clientsOf(v.chain.TLS.Clients)})
		}
	}, p.tableChains)
	p.onDemandClients = flow.Group("clients-on-demand",
		flow.NewIndex(asked, func(k portClients, _ struct{}, yield func(PortKey)) { yield(k.PortKey) }, portClients.compare),
		func(_ *flow.Ctx, _ PortKey, members flow.Members[portClients, struct{}]) (clients, bool) {
			first, _ := members.At(0)
			return first.clients, true
		}, flow.Equal(flow.Same[clients]))
	fit := flow.Map("hosts-that-fit-on-demand", p.tableChains,
		func(c *flow.Ctx, k ir.TableKey, v tableChain, emit func(ir.TableKey, PortKey)) {
			if !translate.FitsOnDemand(&v.chain) {
				return
			}
			names, served := flow.Get(c, wideNames, v.port)
			clients, _ := flow.Get(c, p.onDemandClients, v.port)
			if served && !translate.IsWithin(v.chain.Hostname, names) && clientsOf(v.chain.TLS.Clients) == clients {
				emit(k, v.port)
			}
		}, flow.Equal(flow.Same[PortKey]))
	count := flow.Count("certificates-of-ports", fit, func(_ ir.TableKey, at PortKey, yield func(PortKey)) { yield(at) })

	// Those that would have stayed on demand have an entry.
	could := flow.Map("ports-with-certificates", count,
		func(c *flow.Ctx, k PortKey, n int, emit func(PortKey, bool)) {
			above := p.onDemandAbove(c, k.Gateway)
			_, was := flow.Get(c, p.demand.were, k)
			claims, _ := flow.Get(c, claimed, k)
			if above > 0 && 2*n > above {
				emit(k, n > above || was || claims)
			}
		}, flow.Equal(flow.Same[bool]))
	byGateway := flow.NewIndex(could, func(k PortKey, _ bool, yield func(object.Name)) { yield(k.Gateway) }, PortKey.compare)
	// A proxy says the name when it asks, and not the port: what one port has must be served by no
	// other. So it is one of a Gateway.
	chosen := flow.Group("port-on-demand", byGateway,
		func(c *flow.Ctx, _ object.Name, members flow.Members[PortKey, bool]) (out PortKey, ok bool) {
			best := false
			for k, v := range members.All() {
				if _, was := flow.Get(c, p.demand.were, k); v && was {
					return k, true
				}
				if claims, _ := flow.Get(c, claimed, k); v && (!ok || claims && !best) {
					out, ok, best = k, true, claims
				}
			}
			return out, ok
		}, flow.Equal(flow.Same[PortKey]))
	p.OnDemand = flow.Map("on-demand-ports", could,
		func(c *flow.Ctx, k PortKey, _ bool, emit func(PortKey, bool)) {
			port, _ := flow.Get(c, chosen, k.Gateway)
			emit(k, port == k)
		}, flow.Equal(flow.Same[bool]))

	p.listedChains = flow.Map("listed-chains", p.tableChains,
		func(c *flow.Ctx, k ir.TableKey, v tableChain, emit func(ir.TableKey, tableChain)) {
			if _, fits := flow.Get(c, fit, k); fits {
				if on, _ := flow.Get(c, p.OnDemand, v.port); on {
					return
				}
			}
			emit(k, v)
		})
	p.onDemandHosts = flow.Map("on-demand-hosts", p.tableChains,
		func(c *flow.Ctx, k ir.TableKey, v tableChain, emit func(ir.TableKey, onDemandHost)) {
			if !translate.IsExact(&v.chain) {
				return
			}
			l, served := flow.Get(c, p.portSettings, v.port)
			on, _ := flow.Get(c, p.OnDemand, v.port)
			_, was := flow.Get(c, p.demand.were, v.port) // until the next transaction, which knows that it leaves
			_, leaves := flow.Get(c, p.demand.leaving, v.port)
			if _, claims := flow.Get(c, claimed, v.port); !served || !on && !was && !leaves && !claims {
				return
			}
			h := onDemandHost{port: v.port, listener: l.Name, hostname: v.chain.Hostname, spare: !on}
			if _, fits := flow.Get(c, fit, k); fits && on {
				h.certificate = v.chain.TLS.Certificates[0]
			}
			emit(k, h)
		}, flow.Equal(flow.Same[onDemandHost]))
	byName := flow.NewIndex(p.onDemandHosts,
		func(_ ir.TableKey, h onDemandHost, yield func(ResourceKey)) {
			if !h.certificate.IsZero() {
				yield(ResourceKey{h.port.Gateway, h.hostname})
			}
		}, ir.TableKey.Compare)
	p.onDemandNames = flow.Group("on-demand-names", byName,
		func(_ *flow.Ctx, _ ResourceKey, members flow.Members[ir.TableKey, onDemandHost]) (ir.SecretKey, bool) {
			_, h := members.At(0)
			return h.certificate, true
		}, flow.Equal(flow.Same[ir.SecretKey]))
}

// declareClaimedPorts declares the ports of which a proxy found hosts by server names when it connected, and whether
// it had certificates by these: see takeForms.
func (p *Pipeline) declareClaimedPorts() flow.Table[PortKey, bool] {
	hosts := flow.Map("claimed-hosts", p.shards.claimed,
		func(c *flow.Ctx, k ir.TableKey, onDemand bool, emit func(ir.TableKey, claimedHost)) {
			if v, ok := flow.Get(c, p.tableChains, k); ok && translate.IsExact(&v.chain) {
				emit(k, claimedHost{v.port, onDemand})
			}
		}, flow.Equal(flow.Same[claimedHost]))
	byPort := flow.NewIndex(hosts, func(_ ir.TableKey, h claimedHost, yield func(PortKey)) { yield(h.port) }, ir.TableKey.Compare)
	return flow.Group("claimed-ports", byPort,
		func(_ *flow.Ctx, _ PortKey, members flow.Members[ir.TableKey, claimedHost]) (onDemand, ok bool) {
			for _, h := range members.All() {
				onDemand = onDemand || h.onDemand
			}
			return onDemand, true
		}, flow.Equal(flow.Same[bool]))
}

// OnDemandHosts yields the hosts of listeners whose certificates proxies ask for, by Gateway.
func (p *Pipeline) OnDemandHosts(c *flow.Ctx, yield func(object.Name, ir.OnDemandHost)) {
	for k, h := range flow.All(c, p.onDemandHosts) {
		if !h.certificate.IsZero() {
			yield(h.port.Gateway, ir.OnDemandHost{Listener: h.listener, Hostname: h.hostname, Certificate: h.certificate, Table: k.Table()})
		}
	}
}

// onDemandAbove is above how many certificates the ports of a Gateway serve them on demand; 0 for never.
func (p *Pipeline) onDemandAbove(c *flow.Ctx, gateway object.Name) int {
	gw, ok := flow.Get(c, p.Graph.Fleets, gateway)
	if !ok || gw.Parameters.Certificates == nil || gw.Parameters.Certificates.OnDemandAbove == nil {
		return defaultOnDemandAbove
	}
	return int(*gw.Parameters.Certificates.OnDemandAbove)
}

// keepDemand remembers which ports serve on demand, as keepShards does for tables. A port that would have
// stayed on demand when it is first seen may have been it in an earlier process.
func (p *Pipeline) keepDemand(tx *flow.Tx) {
	d := p.demand
	for _, ch := range d.changed {
		if ch.New {
			d.were.Set(tx, ch.Key, struct{}{})
		} else {
			d.were.Delete(tx, ch.Key)
		}
		if ch.Old || ch.Has && !ch.New && !ch.Had {
			d.leaving.Set(tx, ch.Key, struct{}{})
			d.until[ch.Key] = p.now.Add(drained)
		}
	}
	d.changed = nil
	for k, until := range d.until {
		if p.onOlderListener[k.Gateway] {
			d.until[k] = p.now.Add(drained)
		} else if !p.now.Before(until) {
			delete(d.until, k)
			d.leaving.Delete(tx, k)
		}
	}
}
