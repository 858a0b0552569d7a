package topology

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// A class may say which hostnames namespaces may use on its Gateways. Without that, a
// ListenerSet or a route could take a host below a wildcard that is meant for others, since
// what is more specific goes first.

// hostnameRules are those of a Gateway's class.
type hostnameRules struct {
	allowed   []v1alpha1.AllowedHostnames
	selectors []labels.Selector // of each; nil for those without
}

func (r *hostnameRules) equal(o *hostnameRules) bool {
	return r == o || reflect.DeepEqual(r, o)
}

// declareHostnameRules keeps the rules of the Gateways that have some.
func (g *Graph) declareHostnameRules() flow.Table[object.Name, *hostnameRules] {
	return flow.Map("topology-hostname-rules", g.parameters,
		func(_ *flow.Ctx, gateway object.Name, p *gatewayParameters, emit func(object.Name, *hostnameRules)) {
			if p.allow == nil || len(p.allow.Hostnames) == 0 {
				return
			}
			rules := &hostnameRules{allowed: p.allow.Hostnames, selectors: make([]labels.Selector, len(p.allow.Hostnames))}
			for i, allowed := range rules.allowed {
				if s := allowed.Namespaces.Selector; s != nil {
					rules.selectors[i] = selectorOf(s)
				}
			}
			emit(gateway, rules)
		}, flow.Equal((*hostnameRules).equal))
}

// hostnamePermission is what hostnames a namespace may use on a Gateway.
type hostnamePermission struct {
	limited   bool // else all
	hostnames []string
}

func (p hostnamePermission) equal(o hostnamePermission) bool {
	return p.limited == o.limited && slices.Equal(p.hostnames, o.hostnames)
}

// covers reports whether all hosts of a pattern may be used.
func (p hostnamePermission) covers(pattern string) bool {
	return !p.limited || slices.ContainsFunc(p.hostnames, func(allowed string) bool {
		return allowed == "*" || covers(allowed, pattern)
	})
}

// hostnamesFor returns what hostnames objects of a namespace may use on a Gateway's fleet with these
// rules, which are nil for none. Who may write into the Gateway's namespace could write
// its listeners too; a shared fleet is in no namespace.
func (g *Graph) hostnamesFor(c *flow.Ctx, rules *hostnameRules, fleet object.Name, namespace string) hostnamePermission {
	if rules == nil || namespace == fleet.Namespace {
		return hostnamePermission{}
	}
	out := hostnamePermission{limited: true}
	for i, allowed := range rules.allowed {
		if !slices.Contains(allowed.Namespaces.Names, namespace) &&
			(rules.selectors[i] == nil || !rules.selectors[i].Matches(g.labelsOf(c, namespace))) {
			continue
		}
		for _, name := range allowed.Hostnames {
			if !slices.Contains(out.hostnames, name) {
				out.hostnames = append(out.hostnames, name)
			}
		}
	}
	return out
}

// bar refuses a listener of a ListenerSet, or of a Gateway on a shared fleet, whose hostname its namespace may not use. It
// takes part in no conflict then: it keeps nothing from others.
func (d *draft) bar(may hostnamePermission) {
	if d.family.named() && !may.covers(d.Hostname) {
		d.Barred = true
		d.refuse(condition.ListenerHostnameNotAllowed(d.Hostname, d.Key.Owner().Namespace, d.Key.Gateway().String(), may.hostnames))
	}
}
