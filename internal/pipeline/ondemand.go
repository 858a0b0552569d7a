package pipeline

import (
	"slices"
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
	// Those that would have stayed on demand have an entry.
	could := flow.Map("ports-with-certificates", p.Ports,
		func(c *flow.Ctx, k PortKey, v *Port, emit func(PortKey, bool)) {
			above, n := p.onDemandAbove(c, k.Gateway), len(v.onDemand)
			_, was := flow.Get(c, p.demand.were, k)
			if above > 0 && 2*n > above {
				emit(k, n > above || was)
			}
		}, flow.Equal(flow.Same[bool]))
	byGateway := flow.NewIndex(could, func(k PortKey, _ bool, yield func(object.Name)) { yield(k.Gateway) }, PortKey.compare)
	// A proxy says the name when it asks, and not the port: what one port has must be served by no
	// other. So it is one of a Gateway.
	chosen := flow.Group("port-on-demand", byGateway,
		func(c *flow.Ctx, _ object.Name, members flow.Members[PortKey, bool]) (out PortKey, ok bool) {
			for k, v := range members.All() {
				if _, was := flow.Get(c, p.demand.were, k); v && was {
					return k, true
				}
				if v && !ok {
					out, ok = k, true
				}
			}
			return out, ok
		}, flow.Equal(flow.Same[PortKey]))
	p.OnDemand = flow.Map("on-demand-ports", could,
		func(c *flow.Ctx, k PortKey, _ bool, emit func(PortKey, bool)) {
			port, _ := flow.Get(c, chosen, k.Gateway)
			emit(k, port == k)
		}, flow.Equal(flow.Same[bool]))
	p.onDemandHosts = flow.Map("on-demand-hosts", p.Ports,
		func(c *flow.Ctx, k PortKey, v *Port, emit func(ir.TableKey, onDemandHost)) {
			on, _ := flow.Get(c, p.OnDemand, k)
			_, was := flow.Get(c, p.demand.were, k) // until the next transaction, which knows that it leaves
			if _, leaves := flow.Get(c, p.demand.leaving, k); !on && !was && !leaves {
				return
			}
			left := v.onDemand
			for i := range v.Listener.Chains {
				chain := &v.Listener.Chains[i]
				if !translate.IsExact(chain) {
					continue
				}
				h := onDemandHost{port: k, listener: v.Listener.Name, hostname: chain.Hostname}
				if len(left) > 0 && left[0] == i {
					if left = left[1:]; on && !p.isSharded(c, v.Listener, chain) {
						h.certificate = chain.TLS.Certificates[0]
					}
				}
				emit(ir.TableOf(v.Listener.Gateway, chain.Table), h)
			}
		}, flow.Equal(flow.Same[onDemandHost]))
	byName := flow.NewIndex(p.onDemandHosts,
		func(_ ir.TableKey, h onDemandHost, yield func(ResourceKey)) {
			if !h.certificate.IsZero() {
				yield(ResourceKey{h.port.Gateway, h.hostname})
			}
		}, ir.TableKey.Compare)
	p.onDemandNames = flow.Group("on-demand-names", byName,
		func(_ *flow.Ctx, _ ResourceKey, members flow.Members[ir.TableKey, onDemandHost]) (ir.SecretKey, bool) {
			for _, h := range members.All() {
				return h.certificate, true
			}
			return ir.SecretKey{}, false
		}, flow.Equal(flow.Same[ir.SecretKey]))
}

// demanding returns the listener of a port that knows which of its certificates are asked for.
func (p *Pipeline) demanding(c *flow.Ctx, k PortKey, v *Port, l *ir.Listener) *ir.Listener {
	if on, _ := flow.Get(c, p.OnDemand, k); !on {
		return l
	}
	copied := *l
	copied.Chains = slices.Clone(l.Chains)
	for _, i := range v.onDemand {
		copied.Chains[i].OnDemand = !l.Chains[i].Sharded
	}
	return &copied
}

// onDemandAbove is above how many certificates the ports of a Gateway serve them on demand; 0 for never.
func (p *Pipeline) onDemandAbove(c *flow.Ctx, gateway object.Name) int {
	gw, ok := flow.Get(c, p.Graph.Gateways, gateway)
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
		if !p.now.Before(until) {
			delete(d.until, k)
			d.leaving.Delete(tx, k)
		}
	}
}
