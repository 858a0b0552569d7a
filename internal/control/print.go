package control

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
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
func (p *Pipeline) Print(w io.Writer, stage Stage) error { return p.PrintNamespace(w, stage, "") }

// PrintNamespace is Print for what is in a namespace; all if it is empty.
func (p *Pipeline) PrintNamespace(w io.Writer, stage Stage, namespace string) error {
	elsewhere := func(ns string) bool { return namespace != "" && ns != "" && ns != namespace }
	out := map[string]any{}
	if stage == StageStatus || stage == StageAll {
		out["status"] = p.printedStatus(elsewhere)
	}
	if stage == StageIR || stage == StageAll {
		out["ir"] = slices.DeleteFunc(p.printedIR(), func(g *gatewayIR) bool { return elsewhere(g.Gateway.Namespace) })
	}
	if stage == StageXDS || stage == StageAll {
		list, err := p.printedXDS()
		if err != nil {
			return err
		}
		out["xds"] = slices.DeleteFunc(list, func(g gatewayXDS) bool {
			ns, _, _ := strings.Cut(g.Gateway, "/")
			return elsewhere(ns)
		})
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

func (p *Pipeline) printedStatus(elsewhere func(namespace string) bool) []any {
	out := []any{}
	for _, it := range p.View().Items {
		if elsewhere(it.Metadata.Namespace) {
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
	Gateway   object.Name           `json:"gateway"`
	Listeners []*ir.Listener        `json:"listeners"`
	Tables    map[string][]*ir.Host `json:"tables"`
	Backends  []*ir.Backend         `json:"backends,omitempty"`
	Endpoints []*ir.Endpoints       `json:"endpoints,omitempty"`
	Secrets   []*ir.Secret          `json:"secrets,omitempty"`
}

func (p *Pipeline) printedIR() []*gatewayIR {
	all := map[object.Name]*gatewayIR{}
	at := func(gateway object.Name) *gatewayIR {
		if all[gateway] == nil {
			all[gateway] = &gatewayIR{Gateway: gateway, Listeners: []*ir.Listener{}, Tables: map[string][]*ir.Host{}}
		}
		return all[gateway]
	}
	p.engine.View(func(c *flow.Ctx) {
		for _, port := range flow.All(c, p.ports) {
			g := at(port.listener.Gateway)
			g.Listeners = append(g.Listeners, port.listener)
		}
		for k := range flow.All(c, p.origins) {
			at(k.Gateway).Tables[k.Table] = []*ir.Host{}
		}
		for _, table := range []*flow.Derived[ir.HostKey, *ir.Host]{p.hosts, p.vacant} {
			for k, h := range flow.All(c, table) {
				g := at(k.Gateway)
				g.Tables[k.Table] = append(g.Tables[k.Table], h)
			}
		}
		for k := range flow.All(c, p.members) {
			b, ok := flow.Get(c, p.backends, k.Name)
			if !ok {
				continue
			}
			if own, ok := p.ownBackend(c, k); ok {
				b = own
			}
			g := at(k.Gateway)
			g.Backends = append(g.Backends, b)
			if b.DNS == "" {
				g.Endpoints = append(g.Endpoints, translate.Endpoints(b, flow.Select(c, p.inputs.SlicesByService, b.Service).All()))
			}
		}
		for k := range flow.All(c, p.secrets) {
			if secret := p.secret(c, k.Name); secret != nil {
				g := at(k.Gateway)
				g.Secrets = append(g.Secrets, secret)
			}
		}
	})
	out := make([]*gatewayIR, 0, len(all))
	for _, g := range all {
		slices.SortFunc(g.Listeners, func(a, b *ir.Listener) int { return int(a.Port) - int(b.Port) })
		for _, hosts := range g.Tables {
			slices.SortFunc(hosts, func(a, b *ir.Host) int { return strings.Compare(a.Domain, b.Domain) })
		}
		slices.SortFunc(g.Backends, func(a, b *ir.Backend) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(g.Endpoints, func(a, b *ir.Endpoints) int { return strings.Compare(a.Backend, b.Backend) })
		slices.SortFunc(g.Secrets, func(a, b *ir.Secret) int { return strings.Compare(a.Name, b.Name) })
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *gatewayIR) int { return a.Gateway.Compare(b.Gateway) })
	return out
}

// printedResource is a resource in the shape of Envoy's own configuration dump.
type printedResource struct {
	Name     string          `json:"name"`
	Version  string          `json:"version"`
	Resource json.RawMessage `json:"resource"`
}

type gatewayXDS struct {
	Gateway   string                       `json:"gateway"`
	Resources map[string][]printedResource `json:"resources"`
}

func (p *Pipeline) printedXDS() ([]gatewayXDS, error) {
	byGateway := map[string]map[string][]printedResource{}
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
		types := byGateway[gateway.String()]
		if types == nil {
			types = map[string][]printedResource{}
			byGateway[gateway.String()] = types
		}
		types[r.Type.String()] = append(types[r.Type.String()], printedResource{r.Name, r.Version, text})
	}
	p.engine.View(func(c *flow.Ctx) {
		for k, r := range flow.All(c, p.listeners) {
			add(k.Gateway, r)
		}
		for k, r := range flow.All(c, p.tables) {
			add(k.Gateway, r)
		}
		for k, m := range flow.All(c, p.members) {
			add(k.Gateway, m.cluster)
			add(k.Gateway, m.endpoints)
		}
		for k, r := range flow.All(c, p.secrets) {
			add(k.Gateway, r)
		}
	})
	out := make([]gatewayXDS, 0, len(byGateway))
	for _, gateway := range sortedKeys(byGateway) {
		types := byGateway[gateway]
		for _, list := range types {
			slices.SortFunc(list, func(a, b printedResource) int { return strings.Compare(a.Name, b.Name) })
		}
		out = append(out, gatewayXDS{gateway, types})
	}
	return out, failed
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
