package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// Object is an object of Kubernetes.
type Object interface {
	metav1.Object
	runtime.Object
}

// conversion is one at work.
type conversion struct {
	input     Input
	options   Options
	config    config
	ingresses []*ingress
	authority *types.NamespacedName // of clients' certificates; nil for none
	report    Report
	out       []Object
	of        []string // the Ingresses that these are made of
	making    string   // the one that objects are being made of
	closed    closed
	taken     map[string]bool             // kinds with names that objects have
	listeners map[string]gwv1.SectionName // by host
}

// Convert makes objects of Ingresses, and says what became of each.
func Convert(input Input, options Options) ([]Object, Report) {
	c := convert(input, options, closed{})
	return c.out, c.report
}

func convert(input Input, options Options, closed closed) *conversion {
	c := &conversion{input: input, options: options, closed: closed, taken: map[string]bool{}, listeners: map[string]gwv1.SectionName{}}
	for _, in := range input.Ingresses {
		if of := (&ingress{Ingress: in}); c.serves(in) {
			c.ingresses = append(c.ingresses, of)
			if in.Annotations[classAnnotation] == "" && in.Spec.IngressClassName == nil {
				c.find(of, Finding{Verdict: Differs, Message: "it names no class: ingress-nginx serves it with --watch-ingress-without-class, and only then"})
			}
		} else {
			c.find(of, Finding{Verdict: NotNeeded, Message: "it is of another class, and left as it is"})
		}
	}
	slices.SortFunc(c.ingresses, byAge)
	c.readConfig()
	for _, in := range c.ingresses {
		if c.making = in.name(); !c.refuses(in) {
			c.annotations(in)
		}
	}
	c.making = ""
	servers := c.servers()
	c.addFallbacks(servers)
	c.spreadCertificates(servers)
	c.addGateway(servers)
	for _, in := range c.ingresses {
		if !in.isCanary() {
			c.making = in.name()
			c.addRoutes(in, servers)
		}
	}
	c.report.sort()
	return c
}

func (c *conversion) find(in *ingress, f Finding) {
	if in != nil {
		f.Ingress = in.name()
	}
	c.report = append(c.report, f)
}

// add takes an object, under its name or one like it that is free.
func (c *conversion) add(o Object) {
	name := shortened(o.GetName())
	o.SetName(name)
	for n := 2; c.taken[fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())]; n++ {
		o.SetName(fmt.Sprintf("%s-%d", name, n))
	}
	c.taken[fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())] = true
	c.out, c.of = append(c.out, o), append(c.of, c.making)
}

// maxName is how long names of objects, of listeners and of hosts are at most.
const maxName = 253

// shortened is a name that is not too long, with a place for a number behind it.
func shortened(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:maxName-20], ".-") + "-" + hex.EncodeToString(sum[:5])
}

// addFallbacks gives hosts their default backend. A host that has none answers 404, where a route for
// more hosts would serve it otherwise.
func (c *conversion) addFallbacks(servers []*server) {
	for _, s := range servers {
		if slices.ContainsFunc(s.locations, func(l *location) bool { return l.path == "/" && l.kind != networkingv1.PathTypeExact }) {
			continue
		}
		l := &location{of: s.first, path: "/", kind: networkingv1.PathTypePrefix, backend: s.first.Spec.DefaultBackend, refused: c.refuses(s.first)}
		wider := slices.ContainsFunc(servers, func(o *server) bool {
			return o != s && (o.host == "" || slices.ContainsFunc(append([]string{o.host}, o.aliases...), func(name string) bool {
				return strings.HasPrefix(name, "*.") && strings.HasSuffix(s.host, name[1:])
			}))
		})
		if l.backend != nil || wider {
			s.locations = append(s.locations, l)
		}
	}
}

// group is what an Ingress serves on hosts that have all in common.
type group struct {
	server  *server // the first of them
	hosts   []string
	own     []*location
	secure  bool // there is a certificate
	sends   bool // to HTTPS
	sendAll bool // whatever the path
}

// groups are what an Ingress serves, by hosts.
func (c *conversion) groups(in *ingress, servers []*server) (out []*group) {
	byText := map[string]*group{}
	for _, s := range servers {
		if !s.has(in) {
			continue
		}
		if s.passthrough {
			c.passThrough(in, s)
			continue
		}
		g := &group{server: s, secure: s.certificate != nil}
		var text strings.Builder
		for _, l := range s.locations {
			if l.of != in {
				continue
			}
			g.own = append(g.own, l)
			fmt.Fprintf(&text, "%s %s %s %t\n", l.path, l.kind, backendText(l.backend), l.refused)
			for _, more := range l.canaries {
				fmt.Fprintf(&text, "  %s %s\n", more.of.name(), backendText(more.backend))
			}
		}
		g.sends = c.sendsToHTTPS(in, s)
		g.sendAll = g.sends && !slices.ContainsFunc(s.locations, func(l *location) bool { return !c.sendsToHTTPS(l.of, s) })
		key := fmt.Sprintf("%t %t %t %t %v %s", s.regex, g.secure, g.sends, g.sendAll && s.locations[0].of == in, s.certificate, text.String())
		if known := byText[key]; known != nil && s.host != "" && known.hosts != nil && len(known.hosts)+len(s.aliases) < 15 {
			known.hosts = append(append(known.hosts, s.host), s.aliases...)
			continue
		}
		if s.host != "" {
			g.hosts = append([]string{s.host}, s.aliases...)
		}
		byText[key] = g
		out = append(out, g)
	}
	return out
}

func backendText(b *networkingv1.IngressBackend) string {
	if b == nil || b.Service == nil {
		return "none"
	}
	return fmt.Sprintf("%s:%d%s", b.Service.Name, b.Service.Port.Number, b.Service.Port.Name)
}

// sendsToHTTPS reports whether clients that use HTTP are sent to HTTPS.
func (c *conversion) sendsToHTTPS(in *ingress, s *server) bool {
	// To nginx a host that nobody names has no certificate.
	return s.certificate != nil && s.host != "" && !s.solves(in) && (in.isTrue("ssl-redirect", c.config.sslRedirect) || in.isTrue("force-ssl-redirect", c.config.forceRedirect))
}

// addRoutes makes the routes of an Ingress, and what is for them.
func (c *conversion) addRoutes(in *ingress, servers []*server) {
	var targets []gwv1.LocalPolicyTargetReferenceWithSectionName
	groups := c.groups(in, servers)
	r := &rules{c: c, in: in, routeFilters: map[string]string{}}
	for _, g := range groups {
		name := in.Name
		if len(groups) > 1 && len(g.hosts) > 0 {
			name = in.Name + "-" + label(g.hosts[0])
		}
		common := gwv1.CommonRouteSpec{ParentRefs: c.parents(in, g)}
		plain := *g // what no backend answers is answered by an HTTPRoute
		if in.parts.grpc {
			remote := *g
			remote.own = slices.DeleteFunc(slices.Clone(g.own), (*location).isAnswer)
			plain.own = slices.DeleteFunc(slices.Clone(g.own), func(l *location) bool { return !l.isAnswer() })
			for list := range slices.Chunk(r.grpc(&remote), maxRules) {
				route := &gwv1.GRPCRoute{ObjectMeta: meta(in.Namespace, name), Spec: gwv1.GRPCRouteSpec{CommonRouteSpec: common, Hostnames: hostnames(g.hosts), Rules: list}}
				c.add(route)
				targets = append(targets, target(gwv1.GroupName, "GRPCRoute", route.Name)...)
			}
		}
		for list := range slices.Chunk(r.http(&plain), maxRules) {
			route := &gwv1.HTTPRoute{ObjectMeta: meta(in.Namespace, name), Spec: gwv1.HTTPRouteSpec{CommonRouteSpec: common, Hostnames: hostnames(g.hosts), Rules: list}}
			c.add(route)
			targets = append(targets, target(gwv1.GroupName, "HTTPRoute", route.Name)...)
		}
		c.addRedirects(in, g, name, r)
	}
	c.wwwRedirect(in, servers)
	if in.isTrue("force-ssl-redirect", c.config.forceRedirect) && slices.ContainsFunc(groups, func(g *group) bool { return !g.secure }) {
		c.find(in, Finding{Annotation: "force-ssl-redirect", Verdict: Differs, Opens: true, Message: "hosts without a certificate are served over HTTP and not redirected: it is for a load balancer in front that ends TLS, which can redirect itself"})
	}
	for list := range slices.Chunk(targets, maxTargets) {
		c.addPolicies(in, list)
	}
	r.addBackendTLS()
}

// maxRules and maxTargets are bounds of the Gateway API and of policies.
const (
	maxRules   = 16
	maxTargets = 16
)

// addRedirects makes the route that sends clients to HTTPS.
func (c *conversion) addRedirects(in *ingress, g *group, name string, r *rules) {
	if !g.sends || g.sendAll && g.server.locations[0].of != in {
		return // or that of the host's first Ingress does
	}
	filter := []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gwv1.HTTPRequestRedirectFilter{
		Scheme: new("https"), StatusCode: new(c.config.redirectCode),
	}}}
	list := []gwv1.HTTPRouteRule{{Filters: filter}}
	if !g.sendAll {
		list = nil
		for _, l := range g.own {
			if matches, ok := r.matches(g, l); ok {
				list = append(list, gwv1.HTTPRouteRule{Matches: matches, Filters: filter})
			}
		}
	}
	for part := range slices.Chunk(list, maxRules) {
		c.add(&gwv1.HTTPRoute{ObjectMeta: meta(in.Namespace, name+"-to-https"), Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{c.plainParent(in)}}, Hostnames: hostnames(g.hosts), Rules: part,
		}})
	}
}

// wwwRedirect sends www.HOST to HOST, or the other way round.
func (c *conversion) wwwRedirect(in *ingress, servers []*server) {
	if !in.isTrue("from-to-www-redirect", false) {
		return
	}
	for _, s := range servers {
		other := companion(s, servers)
		if other == "" || !s.has(in) {
			continue
		}
		parents := []gwv1.ParentReference{c.plainParent(in)}
		if s.certificate != nil {
			parents = append(parents, c.secureParent(in, s))
		}
		redirect := &gwv1.HTTPRequestRedirectFilter{Hostname: new(gwv1.PreciseHostname(s.host)), StatusCode: new(c.config.redirectCode)}
		if s.certificate != nil && c.sendsToHTTPS(in, s) {
			redirect.Scheme = new("https")
		}
		c.add(&gwv1.HTTPRoute{ObjectMeta: meta(in.Namespace, in.Name+"-"+label(other)), Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: parents}, Hostnames: hostnames([]string{other}),
			Rules: []gwv1.HTTPRouteRule{{Filters: []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: redirect}}}},
		}})
	}
}

// addPolicies makes the policies of an Ingress.
func (c *conversion) addPolicies(in *ingress, targets []gwv1.LocalPolicyTargetReferenceWithSectionName) {
	p := &in.parts
	if p.authentication != nil || p.authorization != nil {
		o := &v1alpha1.AuthPolicy{ObjectMeta: meta(in.Namespace, c.guardName(in))}
		responses := p.eitherOf()
		o.Spec.TargetRefs, o.Spec.AuthRules = targets, v1alpha1.AuthRules{Authentication: p.authentication, Authorization: p.authorization, Responses: responses}
		c.add(o)
	}
	if p.limits != nil {
		o := &v1alpha1.RateLimitPolicy{ObjectMeta: meta(in.Namespace, c.guardName(in))}
		o.Spec.TargetRefs, o.Spec.RateLimits = targets, v1alpha1.RateLimits{Limits: p.limits}
		c.add(o)
	}
	if own, common := p.traffic.Response.Headers, c.config.traffic.Response.Headers; own != nil && common != nil {
		all := own.DeepCopy() // in its place the Gateway's would hide nothing
		for _, name := range common.Remove {
			same := func(h gwv1.HTTPHeader) bool { return strings.EqualFold(string(h.Name), name) }
			if !slices.ContainsFunc(all.Set, same) && !slices.Contains(all.Remove, name) {
				all.Remove = append(all.Remove, name)
			}
		}
		p.traffic.Response.Headers = all
	}
	if !reflect.ValueOf(p.traffic).IsZero() {
		o := &v1alpha1.TrafficPolicy{ObjectMeta: meta(in.Namespace, in.Name)}
		o.Spec.TargetRefs = targets
		// What the policy of the Gateway says of other settings stays in force.
		o.Spec.Defaults = &v1alpha1.TrafficLayer{Strategy: v1alpha1.Merge, TrafficSettings: p.traffic}
		c.add(o)
	}
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// target is what a policy is for.
func target(group gwv1.Group, kind gwv1.Kind, name string) []gwv1.LocalPolicyTargetReferenceWithSectionName {
	return []gwv1.LocalPolicyTargetReferenceWithSectionName{{
		LocalPolicyTargetReference: gwv1.LocalPolicyTargetReference{Group: group, Kind: kind, Name: gwv1.ObjectName(name)},
	}}
}

func hostnames(list []string) (out []gwv1.Hostname) {
	for _, h := range list {
		out = append(out, gwv1.Hostname(h))
	}
	return out
}

// label makes a part of a name of a host.
func label(host string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(host), "*", "any"), ".", "-")
}
