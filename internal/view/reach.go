package view

import (
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// endpointsOf counts the endpoints of a route's backends, each backend once; nil where they have none of their
// own, such as names that are resolved.
func endpointsOf(p *pipeline.Pipeline, c *flow.Ctx, r *topology.Route) *Endpoints {
	var out *Endpoints
	seen := map[ir.BackendKey]bool{}
	for _, rule := range r.Rules {
		for _, ref := range rule.Backends {
			if ref.Problem != nil || seen[ref.Backend] {
				continue
			}
			seen[ref.Backend] = true
			b := ref.Backend.Backend()
			if b.IsPool() || b.DNS != "" || b.Object.IsZero() {
				continue
			}
			if out == nil {
				out = &Endpoints{}
			}
			if b.Object.Kind == kind.InferencePool {
				n := len(p.Endpoints(c, ref.Backend))
				out.Ready, out.All = out.Ready+n, out.All+n
				continue
			}
			slices := flow.Select(c, p.Inputs.SlicesByBackend, b.Object)
			ready, all := translate.CountEndpoints(ref.Backend, slices.All())
			out.Ready += ready
			out.All += all
		}
	}
	return out
}

// plain notes at routes that are served over HTTPS that they are served in clear text too, on a host on which other
// requests are sent on to HTTPS: whoever wrote that may not know.
func (v *View) plain(c *flow.Ctx, p *pipeline.Pipeline) {
	tables := map[ir.TableKey]bool{} // of listeners without TLS
	for _, l := range flow.All(c, p.Ports) {
		if !l.TLS && len(l.Chains) == 1 && l.Chains[0].Table != "" {
			tables[ir.TableOf(l.Gateway, l.Chains[0].Table)] = true
		}
	}
	hosts := map[object.Key]string{} // of a route, the first by name
	for k, h := range flow.All(c, p.Hosts) {
		if !tables[k.TableKey] || !sendsToHTTPS(h) {
			continue
		}
		for _, rule := range h.Rules {
			if route := rule.Source.Route(); len(rule.Backends) > 0 && (hosts[route] == "" || k.Domain < hosts[route]) {
				hosts[route] = k.Domain
			}
		}
	}
	if len(hosts) == 0 {
		return
	}
	encrypted := map[object.Key]bool{} // a redirect may lead elsewhere
	for k, h := range flow.All(c, p.Hosts) {
		if !tables[k.TableKey] {
			for _, rule := range h.Rules {
				encrypted[rule.Source.Route()] = true
			}
		}
	}
	for i := range v.Items {
		route := v.Items[i].object()
		if sum := &v.Items[i].Summary; sum.OK && sum.Message == "" && encrypted[route] && hosts[route] != "" {
			sum.Message = condition.PlainBesideRedirect(hosts[route])
		}
	}
}

func sendsToHTTPS(h *ir.Host) bool {
	for _, rule := range h.Rules {
		if rule.Redirect != nil && rule.Redirect.Scheme == "https" {
			return true
		}
	}
	return false
}
