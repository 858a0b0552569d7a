package migrate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// server is what nginx serves for one host.
type server struct {
	host      string // empty for all that no other server has
	locations []*location
	// regex says that all paths are regular expressions without regard to case, since one of them is.
	regex bool
	// first is the Ingress that has named the host first, whose default backend counts.
	first *ingress
	// certificate is the Secret; nil without TLS.
	certificate *types.NamespacedName
	passthrough bool
	closed      bool // all is refused
	aliases     []string
}

// location is a path of a host, with the Ingress that it is from.
type location struct {
	of       *ingress
	path     string
	kind     networkingv1.PathType
	backend  *networkingv1.IngressBackend
	canaries []canary
	refused  bool // it answers 503
}

// canary is a further backend of a location.
type canary struct {
	of      *ingress
	backend *networkingv1.IngressBackend
}

// rewrites reports whether the path that the backend is asked for is another one.
func (l *location) rewrites() bool {
	target := l.of.annotation("rewrite-target")
	return target != "" && target != l.path
}

// isAnswer reports whether no backend is asked.
func (l *location) isAnswer() bool { return l.refused || l.backend == nil }

// isRegex reports whether the Ingress makes the paths of its hosts regular expressions.
func (l *location) isRegex() bool { return l.rewrites() || l.of.isTrue("use-regex", false) }

// has reports whether a server has a path of an Ingress.
func (s *server) has(in *ingress) bool {
	return slices.ContainsFunc(s.locations, func(l *location) bool { return l.of == in })
}

// challenges is the path of those who prove that a host is theirs, before it has a certificate.
const challenges = "/.well-known/acme-challenge"

// solves reports whether an Ingress serves nothing but challenges, as those of cert-manager do: ingress-nginx redirects none of
// these.
func (s *server) solves(in *ingress) bool {
	return s.has(in) && !slices.ContainsFunc(s.locations, func(l *location) bool { return l.of == in && !strings.HasPrefix(l.path, challenges) })
}

// servers makes the servers of all Ingresses, by host.
func (c *conversion) servers() []*server {
	byHost := map[string]*server{}
	for _, in := range c.ingresses {
		if in.isCanary() {
			continue
		}
		for _, rule := range in.Spec.Rules {
			s := byHost[rule.Host]
			if s == nil {
				s = &server{host: rule.Host, first: in, passthrough: in.isTrue("ssl-passthrough", false)}
				byHost[rule.Host] = s
			} else if !s.passthrough && in.isTrue("ssl-passthrough", false) {
				c.find(in, Finding{Annotation: "ssl-passthrough", Verdict: NotNeeded, Message: fmt.Sprintf(
					"Ingress %s, which is older, decides for host %s, and doesn't have it: ingress-nginx does the same", s.first.name(), hostKey(s.host))})
			}
			s.closed = s.closed || c.refuses(in) && (in.speaksForHosts() || c.closed.whole[in.name()])
			s.alias(c, in)
			c.certify(s, in)
			if rule.HTTP == nil {
				continue
			}
			for i := range rule.HTTP.Paths {
				c.locate(s, in, &rule.HTTP.Paths[i])
			}
		}
		if b := in.Spec.DefaultBackend; b != nil && len(in.Spec.Rules) == 0 {
			if byHost[""] == nil {
				byHost[""] = &server{first: in}
			}
			c.certify(byHost[""], in)
			c.locate(byHost[""], in, &networkingv1.HTTPIngressPath{Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: *b})
		}
	}
	for _, in := range c.ingresses {
		if in.isCanary() {
			c.addCanary(byHost, in)
		}
	}
	for _, s := range byHost { // a certificate of a wildcard is for the hosts below it too
		if _, rest, ok := strings.Cut(s.host, "."); ok && s.certificate == nil && byHost["*."+rest] != nil {
			s.certificate = byHost["*."+rest].certificate
		}
	}
	out := make([]*server, 0, len(byHost))
	for _, s := range byHost {
		s.regex = slices.ContainsFunc(s.locations, (*location).isRegex)
		c.close(s)
		slices.SortFunc(s.locations, func(a, b *location) int {
			return cmp.Or(cmp.Compare(len(b.path), len(a.path)), cmp.Compare(b.path, a.path), cmp.Compare(a.kind, b.kind))
		})
		if strings.HasPrefix(s.host, "*.") {
			c.find(s.first, Finding{Verdict: Differs, Message: fmt.Sprintf("host %s is for names with more labels too, such as a.b%s; to ingress-nginx it is for one more", s.host, s.host[1:])})
		}
		s.aliases = slices.DeleteFunc(s.aliases, func(alias string) bool { return byHost[alias] != nil })
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *server) int { return cmp.Compare(a.host, b.host) })
	known := map[string]bool{}
	for _, s := range out { // of two with one alias the first host has it
		s.aliases = slices.DeleteFunc(s.aliases, func(alias string) bool {
			taken := known[alias]
			known[alias] = true
			return taken
		})
	}
	c.tellSharedRegex(out)
	return out
}

// locate adds a path to a server, unless an older Ingress has it.
func (c *conversion) locate(s *server, in *ingress, p *networkingv1.HTTPIngressPath) {
	l := &location{of: in, path: cmp.Or(p.Path, "/"), kind: kindOf(p), backend: &p.Backend, refused: c.refuses(in)}
	for _, other := range s.locations {
		if other.path != l.path || other.kind != l.kind {
			continue
		}
		f := Finding{Verdict: NotNeeded, Message: fmt.Sprintf(
			"path %s of host %s is served by Ingress %s, which is older: ingress-nginx does the same", l.path, cmp.Or(s.host, "*"), other.of.name())}
		if in.CreationTimestamp.IsZero() && other.of.CreationTimestamp.IsZero() {
			f = Finding{Verdict: Differs, Opens: true, Message: fmt.Sprintf(
				"path %s of host %s is taken from Ingress %s, and nothing says which of the two is older, which has it: convert from the cluster", l.path, cmp.Or(s.host, "*"), other.of.name())}
			other.refused = other.refused || c.refuses(in)
		}
		c.find(in, f)
		return
	}
	s.locations = append(s.locations, l)
}

// kindOf is the type of a path. ingress-nginx takes ImplementationSpecific for Prefix.
func kindOf(p *networkingv1.HTTPIngressPath) networkingv1.PathType {
	if p.PathType != nil && *p.PathType == networkingv1.PathTypeExact {
		return networkingv1.PathTypeExact
	}
	return networkingv1.PathTypePrefix
}

// certify gives a server its certificate, unless an older Ingress has.
func (c *conversion) certify(s *server, in *ingress) {
	if s.certificate != nil {
		return
	}
	named := in.Spec.TLS
	if len(named) > 0 { // a host that none of them lists has the default certificate
		named = append(slices.Clone(named), networkingv1.IngressTLS{})
	}
	for i, t := range named {
		if t.SecretName == "" && i < len(in.Spec.TLS) {
			continue // as one that none of them lists
		}
		if s.host != "" && len(t.Hosts) > 0 && !slices.ContainsFunc(t.Hosts, func(h string) bool { return covers(h, s.host) }) {
			continue
		}
		switch {
		case t.SecretName != "":
			s.certificate = &types.NamespacedName{Namespace: in.Namespace, Name: t.SecretName}
		case c.options.DefaultCertificate.Name != "":
			s.certificate = new(c.options.DefaultCertificate)
		default:
			c.find(in, Finding{Verdict: NotPossible, Opens: true, host: hostKey(s.host), Message: fmt.Sprintf(
				"host %s has the controller's default certificate, since no Secret is named for it in tls: name it with --default-certificate, or it is served in clear", cmp.Or(s.host, "*"))})
		}
		return
	}
}

// covers reports whether a name of a certificate, or of a list of hosts, is for a host.
func covers(name, host string) bool {
	if name == host {
		return true
	}
	_, rest, ok := strings.Cut(host, ".")
	return ok && name == "*."+rest
}

// alias adds the names by which a server is known besides.
func (s *server) alias(c *conversion, in *ingress) {
	if len(s.aliases) > 0 {
		return
	}
	for name := range strings.SplitSeq(in.annotation("server-alias"), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case name == "" || name == s.host || slices.Contains(s.aliases, name):
		case len(name) > maxName || !isHost(strings.TrimPrefix(name, "*.")):
			c.find(in, Finding{Annotation: "server-alias", Value: name, Verdict: NotPossible, Message: "a hostname is a name, or one that begins with *. : list the hosts"})
		default:
			s.aliases = append(s.aliases, name)
		}
	}
}

// maxHeader is how long what a canary says of a header is at most, which leaves room for what is put around it.
const maxHeader = 1024

// canaryHeader is the name of any header.
var canaryHeader = regexp.MustCompile("^[-A-Za-z0-9!#$%&'*+.^_`|~]{1,256}$")

// addCanary adds the backends of a canary to the locations that it is for.
func (c *conversion) addCanary(byHost map[string]*server, in *ingress) {
	if c.refuses(in) {
		return
	}
	if header := in.annotation("canary-by-header"); header != "" && !canaryHeader.MatchString(header) {
		c.find(in, Finding{Annotation: "canary-by-header", Value: header, Verdict: NotPossible, Message: "it is no name of a header: the canary is left out"})
		return
	}
	for _, name := range []string{"canary-by-header-value", "canary-by-header-pattern", "canary-by-cookie"} {
		if len(in.annotation(name)) > maxHeader {
			c.find(in, Finding{Annotation: name, Verdict: NotPossible, Message: "it is longer than 1024 characters: the canary is left out"})
			return
		}
	}
	if in.Spec.DefaultBackend != nil {
		c.find(in, Finding{Annotation: "canary", Verdict: NotPossible, Message: "of a canary's defaultBackend nothing is made"})
	}
	for _, rule := range in.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for i := range rule.HTTP.Paths {
			p := &rule.HTTP.Paths[i]
			found := false
			if s := byHost[rule.Host]; s != nil {
				for _, l := range s.locations {
					if l.path == cmp.Or(p.Path, "/") && l.kind == kindOf(p) && l.of.Namespace == in.Namespace {
						l.canaries = append(l.canaries, canary{in, &p.Backend})
						found = true
					}
				}
			}
			if !found {
				c.find(in, Finding{Annotation: "canary", Verdict: NotNeeded, Message: fmt.Sprintf(
					"no other Ingress of this namespace has path %s of host %s: ingress-nginx serves nothing there", cmp.Or(p.Path, "/"), cmp.Or(rule.Host, "*"))})
			}
		}
	}
}

// tellSharedRegex says where an Ingress makes the paths of others regular expressions.
func (c *conversion) tellSharedRegex(all []*server) {
	for _, s := range all {
		if !s.regex {
			continue
		}
		by := s.locations[slices.IndexFunc(s.locations, (*location).isRegex)].of
		told := map[*ingress]bool{by: true}
		for _, l := range s.locations {
			if told[l.of] || l.path == "/" {
				continue
			}
			told[l.of] = true
			c.find(l.of, Finding{Verdict: Converted, Message: fmt.Sprintf(
				"Ingress %s makes all paths of host %s regular expressions that begin at the path's start and don't regard case, as ingress-nginx does; those of this one too",
				by.name(), cmp.Or(s.host, "*"))})
		}
	}
}
