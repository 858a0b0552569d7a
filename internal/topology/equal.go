package topology

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Nodes compare by hand: reflection over them would cost more than computing them.

// Equal reports whether two nodes say the same of the same object.
func (g *Gateway) Equal(o *Gateway) bool {
	return g.Fleet == o.Fleet && g.Name == o.Name && g.Object == o.Object && g.Class == o.Class &&
		g.Parameters == o.Parameters && g.Allow == o.Allow && g.Frozen == o.Frozen && g.MissingClass == o.MissingClass &&
		g.Accepted == o.Accepted && g.ResolvedRefs == o.ResolvedRefs &&
		ptr.Equal(g.Unusable, o.Unusable) &&
		g.ClientCertificate == o.ClientCertificate &&
		g.Provisioned == o.Provisioned && g.NoAddress == o.NoAddress && ptr.Equal(g.AddressesAssigned, o.AddressesAssigned) &&
		slices.Equal(g.Addresses, o.Addresses) && slices.Equal(g.Assigned, o.Assigned) &&
		slices.EqualFunc(g.Listeners, o.Listeners, (*Listener).Equal)
}

// Equal reports whether two nodes say the same of the same object.
func (s *ListenerSet) Equal(o *ListenerSet) bool {
	return s.Name == o.Name && s.Object == o.Object && s.Gateway == o.Gateway && s.Accepted == o.Accepted &&
		ptr.Equal(s.Unusable, o.Unusable) && slices.EqualFunc(s.Listeners, o.Listeners, (*Listener).Equal)
}

// Equal reports whether two nodes say the same.
func (l *Listener) Equal(o *Listener) bool {
	return l.Key == o.Key && l.Port == o.Port && l.BindPort == o.BindPort &&
		l.Protocol == o.Protocol && l.Passthrough == o.Passthrough && l.Hostname == o.Hostname &&
		l.Serves == o.Serves && l.Barred == o.Barred && l.HTTP3 == o.HTTP3 &&
		l.Namespaces.Equal(o.Namespaces) &&
		slices.EqualFunc(l.Kinds, o.Kinds, sameKind) &&
		slices.Equal(l.Certificates, o.Certificates) &&
		slices.Equal(l.Validity, o.Validity) &&
		l.MinTLSVersion == o.MinTLSVersion && l.Clients.Equal(o.Clients) &&
		slices.EqualFunc(l.Filters, o.Filters, sameAuth) &&
		slices.Equal(l.Conditions, o.Conditions)
}

// Equal reports whether two rules let the same namespaces in.
func (r NamespaceRule) Equal(o NamespaceRule) bool {
	return r.From == o.From && selectorText(r.Selector) == selectorText(o.Selector)
}

func selectorText(s labels.Selector) string {
	if s == nil {
		return ""
	}
	// Nothing and everything both print as nothing.
	if _, selectable := s.Requirements(); !selectable {
		return "-"
	}
	return s.String()
}

func sameKind(a, b gwv1.RouteGroupKind) bool {
	return a.Kind == b.Kind && ptr.Equal(a.Group, b.Group)
}

// Equal reports whether two nodes say the same of the same object.
func (r *Route) Equal(o *Route) bool {
	return r.Object == o.Object && r.Key == o.Key && ptr.Equal(r.Unresolved, o.Unresolved) &&
		slices.Equal(r.PolicyTargets, o.PolicyTargets) &&
		slices.EqualFunc(r.Rules, o.Rules, func(a, b RouteRule) bool {
			return slices.EqualFunc(a.Backends, b.Backends, BackendRef.Equal) &&
				slices.EqualFunc(a.Mirrors, b.Mirrors, BackendRef.Equal) &&
				slices.EqualFunc(a.Extensions, b.Extensions, (*RouteFilter).Equal) &&
				(a.Auth == b.Auth || a.Auth != nil && b.Auth != nil && a.Auth.Equal(*b.Auth))
		})
}

// Equal reports whether two references resolve to the same.
func (b BackendRef) Equal(o BackendRef) bool {
	return b.Backend == o.Backend && ptr.Equal(b.Problem, o.Problem)
}

// Equal reports whether two attachments serve the same hosts.
func (a *Attachment) Equal(o *Attachment) bool {
	return a.Key == o.Key && a.Frontend == o.Frontend && slices.Equal(a.Hosts, o.Hosts)
}

func sameParents(a, b []Parent) bool {
	return slices.EqualFunc(a, b, func(a, b Parent) bool {
		return sameRef(a.Ref, b.Ref) && a.Gateway == b.Gateway && a.Fleet == b.Fleet && ptr.Equal(a.Answer, b.Answer) &&
			slices.EqualFunc(a.attached, b.attached, (*Attachment).Equal)
	})
}

func sameRef(a, b *gwv1.ParentReference) bool {
	return a == b || a.Name == b.Name && ptr.Equal(a.Group, b.Group) && ptr.Equal(a.Kind, b.Kind) &&
		ptr.Equal(a.Namespace, b.Namespace) && ptr.Equal(a.SectionName, b.SectionName) && ptr.Equal(a.Port, b.Port)
}
