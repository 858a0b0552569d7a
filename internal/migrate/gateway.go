package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const plainListener = "http"

// addGateway makes the Gateway, with a listener for HTTP, and in each namespace with certificates the
// ListenerSets that use them, so that no certificate leaves its namespace.
func (c *conversion) addGateway(servers []*server) {
	all := gwv1.NamespacesFromAll
	gateway := &gwv1.Gateway{ObjectMeta: meta(c.options.Gateway.Namespace, c.options.Gateway.Name)}
	gateway.Spec.GatewayClassName = gwv1.ObjectName(c.options.GatewayClass)
	gateway.Spec.Listeners = []gwv1.Listener{{
		Name: plainListener, Port: 80, Protocol: gwv1.HTTPProtocolType,
		AllowedRoutes: &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{From: &all}},
	}}
	gateway.Spec.AllowedListeners = &gwv1.AllowedListeners{Namespaces: &gwv1.ListenerNamespaces{From: &all}}
	c.addAuthority(gateway)
	c.add(gateway)

	entries := map[string][]gwv1.ListenerEntry{}
	for _, s := range servers {
		names := append([]string{s.host}, s.aliases...)
		if other := companion(s, servers); other != "" {
			names = append(names, other)
		}
		for _, host := range names {
			e := gwv1.ListenerEntry{Name: c.listenerName(host), Port: 443, AllowedRoutes: &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{From: &all}}}
			if host != "" {
				e.Hostname = new(gwv1.Hostname(host))
			}
			namespace := s.first.Namespace
			switch {
			case s.passthrough:
				e.Protocol, e.TLS = gwv1.TLSProtocolType, &gwv1.ListenerTLSConfig{Mode: new(gwv1.TLSModePassthrough)}
			case s.certificate != nil:
				namespace = s.certificate.Namespace
				e.Protocol, e.TLS = gwv1.HTTPSProtocolType, &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{Name: gwv1.ObjectName(s.certificate.Name)}}}
			default:
				continue
			}
			if !slices.ContainsFunc(entries[namespace], func(o gwv1.ListenerEntry) bool { return o.Name == e.Name }) {
				entries[namespace] = append(entries[namespace], e)
			}
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(entries)) {
		for list := range slices.Chunk(entries[namespace], maxListeners) {
			set := &gwv1.ListenerSet{ObjectMeta: meta(namespace, c.options.Gateway.Name)}
			set.Spec.ParentRef = gwv1.ParentGatewayReference{Name: gwv1.ObjectName(c.options.Gateway.Name), Namespace: new(gwv1.Namespace(c.options.Gateway.Namespace))}
			set.Spec.Listeners = list
			c.add(set)
		}
	}

	c.addCommon()
}

// maxListeners is how many a ListenerSet has at most.
const maxListeners = 64

// listenerName is the name of a host's listener. Hosts that would have one name are numbered.
func (c *conversion) listenerName(host string) gwv1.SectionName {
	if name := c.listeners[host]; name != "" {
		return name
	}
	base := "https"
	if host != "" {
		base = shortened(base + "-" + label(host))
	}
	name := base
	for n := 2; c.taken["listener "+name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	c.taken["listener "+name] = true
	c.listeners[host] = gwv1.SectionName(name)
	return c.listeners[host]
}

// companion is the name that from-to-www-redirect sends to a host; empty for none.
func companion(s *server, servers []*server) string {
	if s.host == "" || strings.HasPrefix(s.host, "*") || !slices.ContainsFunc(s.locations, func(l *location) bool { return l.of.isTrue("from-to-www-redirect", false) }) {
		return ""
	}
	other, isWWW := strings.CutPrefix(s.host, "www.")
	if !isWWW {
		other = "www." + s.host
	}
	if len(other) > maxName || slices.ContainsFunc(servers, func(o *server) bool { return o.host == other || slices.Contains(o.aliases, other) }) {
		return ""
	}
	return other
}

// parents are where the routes of a group are served.
func (c *conversion) parents(in *ingress, g *group) (out []gwv1.ParentReference) {
	if !g.sends {
		out = append(out, c.plainParent(in))
	}
	if g.secure {
		out = append(out, c.secureParent(in, g.server))
	}
	return out
}

func (c *conversion) plainParent(in *ingress) gwv1.ParentReference {
	ref := gwv1.ParentReference{Name: gwv1.ObjectName(c.options.Gateway.Name), SectionName: new(gwv1.SectionName(plainListener))}
	if in.Namespace != c.options.Gateway.Namespace {
		ref.Namespace = new(gwv1.Namespace(c.options.Gateway.Namespace))
	}
	return ref
}

// secureParent is the ListenerSet with the listener of a host: the names that its sets have are as many as
// there are sets of 64 listeners, so the one is looked for that has it.
func (c *conversion) secureParent(in *ingress, s *server) gwv1.ParentReference {
	ref := gwv1.ParentReference{Group: new(gwv1.Group(gwv1.GroupName)), Kind: new(gwv1.Kind("ListenerSet")), Name: gwv1.ObjectName(c.options.Gateway.Name)}
	for _, o := range c.out {
		set, ok := o.(*gwv1.ListenerSet)
		if !ok || !slices.ContainsFunc(set.Spec.Listeners, func(e gwv1.ListenerEntry) bool { return e.Name == c.listenerName(s.host) }) {
			continue
		}
		ref.Name = gwv1.ObjectName(set.Name)
		if set.Namespace != in.Namespace {
			ref.Namespace = new(gwv1.Namespace(set.Namespace))
		}
	}
	return ref
}

// passThrough makes the route of a host whose TLS the backend ends.
func (c *conversion) passThrough(in *ingress, s *server) {
	if s.host == "" {
		return
	}
	p := &in.parts
	c.find(in, Finding{Annotation: "ssl-passthrough", Verdict: Differs, Opens: p.authentication != nil || p.authorization != nil || p.limits != nil || p.status != 0,
		Message: "TLS of host " + s.host + " passes, and nothing of the Ingress's other annotations is in force; so it is in ingress-nginx if it runs with --enable-ssl-passthrough, and only then"})
	for _, l := range s.locations {
		if l.of != in || l.refused {
			continue
		}
		if l.path != "/" || l.backend == nil || l.backend.Service == nil {
			c.find(in, Finding{Annotation: "ssl-passthrough", Verdict: NotNeeded, Message: fmt.Sprintf("path %s of host %s has no effect beside ssl-passthrough, which knows no paths", l.path, s.host)})
			continue
		}
		ref, ok := c.backend(in, l.backend)
		if !ok {
			continue
		}
		route := &gwv1.TLSRoute{ObjectMeta: meta(in.Namespace, in.Name+"-passthrough")}
		route.Spec.ParentRefs = []gwv1.ParentReference{c.secureParent(in, s)}
		route.Spec.Hostnames = hostnames(append([]string{s.host}, s.aliases...))
		route.Spec.Rules = []gwv1.TLSRouteRule{{BackendRefs: []gwv1.BackendRef{ref}}}
		c.add(route)
	}
}

// backend finds a Service's port.
func (c *conversion) backend(in *ingress, b *networkingv1.IngressBackend) (gwv1.BackendRef, bool) {
	if b == nil || b.Service == nil {
		c.find(in, Finding{Verdict: NotPossible, Message: "a backend that is no Service is not served"})
		return gwv1.BackendRef{}, false
	}
	port, ok := c.port(in.Namespace, b.Service)
	if !ok {
		c.find(in, Finding{Verdict: NotPossible, Message: fmt.Sprintf(
			"Service %s has no port %q in what was read, so its paths answer 500: have the Service among it", b.Service.Name, b.Service.Port.Name)})
		return gwv1.BackendRef{}, false
	}
	return gwv1.BackendRef{BackendObjectReference: gwv1.BackendObjectReference{Name: gwv1.ObjectName(b.Service.Name), Port: &port}}, true
}
