package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// Stage is a stage of the pipeline that can be printed.
type Stage string

// The stages.
const (
	StageIR     Stage = "ir"
	StageXDS    Stage = "xds"
	StageStatus Stage = "status"
	StageAll    Stage = "yaml"
)

// Print writes a stage of the pipeline as YAML, in an order that depends on the
// content alone.
func Print(w io.Writer, p *pipeline.Pipeline, stage Stage) error {
	return PrintFocus(w, p, stage, Focus{})
}

// PrintFocus is Print for a part of what there is.
func PrintFocus(w io.Writer, p *pipeline.Pipeline, stage Stage, f Focus) error {
	out := map[string]any{}
	if stage == StageStatus || stage == StageAll {
		out["status"] = printedStatus(p, f)
	}
	if stage == StageIR || stage == StageAll {
		list, err := printedIR(p, f)
		if err != nil {
			return err
		}
		out["ir"] = list
	}
	if stage == StageXDS || stage == StageAll {
		list, err := printedXDS(p, f)
		if err != nil {
			return err
		}
		out["xds"] = list
	}
	var doc any = out
	if stage != StageAll {
		doc = out[string(stage)]
	}
	text, err := yaml.Marshal(doc)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func printedStatus(p *pipeline.Pipeline, f Focus) []any {
	out := []any{}
	for _, it := range Of(p).Items {
		it.Metadata.CreationTimestamp = metav1.Time{} // which is no part of what objects become
		if !f.item(it) {
			continue
		}
		out = append(out, map[string]any{
			"apiVersion": it.APIVersion, "kind": it.Kind, "metadata": it.Metadata, "status": it.Status,
		})
	}
	return out
}

// gatewayIR is all that a Gateway is to serve.
type gatewayIR struct {
	Gateway    object.Name           `json:"gateway"`
	Listeners  []*ir.Listener        `json:"listeners"`
	OnDemand   []ir.OnDemandHost     `json:"onDemand,omitempty"`
	Tables     map[string][]*ir.Host `json:"tables"`
	Backends   []*ir.Backend         `json:"backends,omitempty"`
	Endpoints  []*ir.Endpoints       `json:"endpoints,omitempty"`
	Secrets    []*ir.Secret          `json:"secrets,omitempty"`
	RateLimits []ir.RateLimit        `json:"rateLimits,omitempty"`
}

func printedIR(p *pipeline.Pipeline, f Focus) ([]*gatewayIR, error) {
	all := map[object.Name]*gatewayIR{}
	at := func(gateway object.Name) *gatewayIR {
		if all[gateway] == nil {
			all[gateway] = &gatewayIR{Gateway: gateway, Listeners: []*ir.Listener{}, Tables: map[string][]*ir.Host{}}
		}
		return all[gateway]
	}
	p.Engine.View(func(c *flow.Ctx) {
		for _, port := range flow.All(c, p.Ports) {
			g := at(port.Gateway)
			g.Listeners = append(g.Listeners, port)
		}
		p.OnDemandHosts(c, func(gateway object.Name, h ir.OnDemandHost) {
			g := at(gateway)
			g.OnDemand = append(g.OnDemand, h)
		})
		for k := range flow.All(c, p.RouteTables) {
			at(k.Gateway()).Tables[k.Table()] = []*ir.Host{}
		}
		for _, table := range []*flow.Derived[ir.HostKey, *ir.Host]{p.Hosts, p.FallbackHosts} {
			for k, h := range flow.All(c, table) {
				g := at(k.Gateway())
				g.Tables[k.Table()] = append(g.Tables[k.Table()], h)
			}
		}
		for k, m := range flow.All(c, p.Members) {
			b := k.Backend.Backend()
			if b.IsPool() || m.Cluster == nil {
				continue
			}
			if own, ok := p.OwnBackend(c, k); ok {
				b = *own
			}
			g := at(k.Gateway)
			g.Backends = append(g.Backends, &b)
			if b.DNS == "" {
				g.Endpoints = append(g.Endpoints, &ir.Endpoints{Backend: k.Backend, Endpoints: p.Endpoints(c, k.Backend)})
			}
		}
		for k, limits := range flow.All(c, p.RateLimits) {
			g := at(k.Gateway)
			g.RateLimits = append(g.RateLimits, limits...)
		}
		for k := range flow.All(c, p.Secrets) {
			if secret := p.Secret(c, k.Secret); secret != nil {
				g := at(k.Gateway)
				g.Secrets = append(g.Secrets, secret)
			}
		}
	})
	out := make([]*gatewayIR, 0, len(all))
	for _, g := range all {
		if f.without(g.Gateway) {
			continue
		}
		if f.narrow() {
			if err := f.pruneIR(g); err != nil {
				return nil, err
			}
			if len(g.Tables) == 0 {
				continue
			}
		}
		slices.SortFunc(g.Listeners, func(a, b *ir.Listener) int { return cmp.Or(int(a.Port)-int(b.Port), strings.Compare(a.Name, b.Name)) })
		slices.SortFunc(g.OnDemand, func(a, b ir.OnDemandHost) int {
			return cmp.Or(strings.Compare(a.Listener, b.Listener), strings.Compare(a.Hostname, b.Hostname))
		})
		for _, hosts := range g.Tables {
			slices.SortFunc(hosts, func(a, b *ir.Host) int { return strings.Compare(a.Domain, b.Domain) })
		}
		slices.SortFunc(g.Backends, func(a, b *ir.Backend) int { return strings.Compare(a.Key().String(), b.Key().String()) })
		slices.SortFunc(g.Endpoints, func(a, b *ir.Endpoints) int { return strings.Compare(a.Backend.String(), b.Backend.String()) })
		slices.SortFunc(g.RateLimits, func(a, b ir.RateLimit) int { return strings.Compare(a.Key.String(), b.Key.String()) })
		slices.SortFunc(g.Secrets, func(a, b *ir.Secret) int { return a.Name.Compare(b.Name) })
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *gatewayIR) int { return a.Gateway.Compare(b.Gateway) })
	return out, nil
}

// printedResource is a resource in the shape of Envoy's own configuration dump.
type printedResource struct {
	Name     string          `json:"name"`
	Version  string          `json:"version"`
	Resource json.RawMessage `json:"resource"`
}

type gatewayXDS struct {
	of        object.Name
	Gateway   string                       `json:"gateway"`
	Resources map[string][]printedResource `json:"resources"`
	// Patched are the resources and virtual hosts that patches of parameters have changed.
	Patched []printedPatch `json:"patched,omitempty"`
}

func printedXDS(p *pipeline.Pipeline, f Focus) ([]gatewayXDS, error) {
	byGateway := map[object.Name]map[string][]printedResource{}
	sources := map[object.Name]map[string][]object.Key{} // of the rules in a domain
	tables := map[string]string{}                        // of route configurations
	patched := map[object.Name][]printedPatch{}
	var failed error
	add := func(gateway object.Name, r *envoy.Resource) {
		if r == nil {
			return
		}
		text, err := r.JSON()
		if err != nil {
			failed = fmt.Errorf("%s %s: %w", r.Type, r.Name, err)
			return
		}
		types := byGateway[gateway]
		if types == nil {
			types = map[string][]printedResource{}
			byGateway[gateway] = types
		}
		types[r.Type.String()] = append(types[r.Type.String()], printedResource{r.Name, r.Version, text})
	}
	p.Engine.View(func(c *flow.Ctx) {
		for k, r := range flow.All(c, p.Listeners) {
			add(k.Gateway, r)
		}
		for k, r := range flow.All(c, p.Scopes) {
			add(k.Gateway, r)
		}
		for k, r := range flow.All(c, p.RouteConfigurations) {
			add(k.Gateway, r)
			tables[k.Name] = p.TableOf(c, k).Table()
		}
		for k, a := range flow.All(c, p.TableAccess) {
			add(k.Gateway, a.Resource)
		}
		for k, r := range flow.All(c, p.LimitFilters) {
			add(k.Gateway, r)
		}
		for k, f := range flow.All(c, p.Forwarders) {
			add(k.Gateway, f.Resource)
		}
		for k, m := range flow.All(c, p.Members) {
			add(k.Gateway, m.Cluster)
			add(k.Gateway, m.Endpoints)
		}
		for k, r := range flow.All(c, p.Secrets) {
			add(k.Gateway, r)
		}
		for gateway := range byGateway {
			list, err := printedPatches(c, p, gateway)
			patched[gateway], failed = list, cmp.Or(failed, err)
		}
		if !f.narrow() {
			return
		}
		for k, h := range flow.All(c, p.Hosts) {
			if sources[k.Gateway()] == nil {
				sources[k.Gateway()] = map[string][]object.Key{}
			}
			sources[k.Gateway()][k.Domain] = append(sources[k.Gateway()][k.Domain], routesOf(h)...)
		}
	})
	out := make([]gatewayXDS, 0, len(byGateway))
	for gateway, types := range byGateway {
		if f.without(gateway) {
			continue
		}
		if f.narrow() {
			of := sources[gateway]
			if err := f.pruneXDS(types, tables, func(domain string) []object.Key { return of[domain] }); err != nil {
				return nil, err
			}
			if len(types) == 0 {
				continue
			}
		}
		for _, list := range types {
			slices.SortFunc(list, func(a, b printedResource) int { return strings.Compare(a.Name, b.Name) })
		}
		changed := patched[gateway]
		if f.narrow() {
			changed = ofPrinted(changed, types)
		}
		out = append(out, gatewayXDS{gateway, gateway.String(), types, changed})
	}
	slices.SortFunc(out, func(a, b gatewayXDS) int { return strings.Compare(a.Gateway, b.Gateway) })
	return out, failed
}
