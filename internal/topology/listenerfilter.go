package topology

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
)

// ListenerFilters are what the requests of a listener meet before a route is chosen (GEP-5224).
type ListenerFilters struct {
	Filters  []ListenerFilter   // in this order
	Problems []metav1.Condition // with what they refer to
}

// ListenerFilter asks a service.
type ListenerFilter struct {
	// Auth is nil for a filter that can't be served.
	Auth    *gwv1.HTTPExternalAuthFilter
	Service BackendRef
}

// Equal reports whether two lists do the same.
func (f *ListenerFilters) Equal(o *ListenerFilters) bool {
	return slices.Equal(f.Problems, o.Problems) && slices.EqualFunc(f.Filters, o.Filters, func(a, b ListenerFilter) bool {
		return a.Service.Equal(b.Service) && sameAuth(a.Auth, b.Auth)
	})
}

// sameAuth compares filters of different versions of an object.
func sameAuth(a, b *gwv1.HTTPExternalAuthFilter) bool { return a == b || reflect.DeepEqual(a, b) }

// checkFilters refuses a listener with a filter before routing that can't be served: to serve it without that
// would let requests pass which the filter was to stop. An empty list asks for none.
func (d *draft) checkFilters() {
	if d.spec.Filters == nil {
		return
	}
	for i := range d.spec.Filters.Requests {
		f, field := &d.spec.Filters.Requests[i], fmt.Sprintf("filters.requests[%d]", i)
		switch {
		case d.Protocol != gwv1.HTTPProtocolType && d.Protocol != gwv1.HTTPSProtocolType:
			d.refuse(condition.ListenerUnsupportedValue(field,
				fmt.Sprintf("a listener of protocol %s reads no requests; remove it, or use HTTP or HTTPS", d.Protocol)))
		case f.Type != gwv1.ListenerFilterExternalAuth:
			d.refuse(condition.ListenerUnsupportedValue(field,
				fmt.Sprintf("filters of type %s are not supported on listeners; remove it, or use ExternalAuth", f.Type)))
		case f.ExternalAuth == nil:
			d.refuse(condition.ListenerUnsupportedValue(field+".externalAuth", "missing; say which service is asked"))
		}
	}
}

// readFilters notes the filters of a listener, also of one that is refused for them: its hosts may be in a table with
// those of others. What they refer to is for declareListenerFilters to find: Services have policies, and those are
// known later.
func (d *draft) readFilters() {
	if d.spec.Filters == nil {
		return
	}
	for i := range d.spec.Filters.Requests {
		f := &d.spec.Filters.Requests[i]
		if f.Type == gwv1.ListenerFilterExternalAuth {
			d.Filters = append(d.Filters, f.ExternalAuth)
		} else {
			d.Filters = append(d.Filters, nil)
		}
	}
}

// declareListenerFilters follows the references of filters before routing.
func (g *Graph) declareListenerFilters() {
	resolve := func(c *flow.Ctx, k ListenerKey, l *Listener, emit func(ListenerKey, *ListenerFilters)) {
		if len(l.Filters) == 0 {
			return
		}
		r := resolver{g: g, c: c, route: k.Owner()}
		out := &ListenerFilters{Filters: make([]ListenerFilter, len(l.Filters))}
		for i, auth := range l.Filters {
			if auth == nil {
				continue
			}
			service := r.auth(auth, func() string { return fmt.Sprintf("filters.requests[%d].externalAuth.backendRef", i) })
			out.Filters[i] = ListenerFilter{auth, *service}
		}
		out.Problems = r.problems
		emit(k, out)
	}
	g.listenerFilters = flow.Map("topology-listener-filters", g.Listeners, resolve)
	g.setListenerFilters = flow.Map("topology-set-listener-filters", g.SetListeners, resolve)
}

// FiltersOf returns the filters of a listener that has some.
func (g *Graph) FiltersOf(c *flow.Ctx, l *Listener) *ListenerFilters {
	f, _ := flow.Get(c, TableOf(l.Key, g.listenerFilters, g.setListenerFilters), l.Key)
	return f
}
