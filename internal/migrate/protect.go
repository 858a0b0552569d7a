package migrate

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// ranges reads a list of addresses and networks; wrong is the first one that is neither.
func ranges(list string) (out []string, wrong string) {
	for text := range strings.SplitSeq(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if network, err := netip.ParsePrefix(text); err == nil {
			out = append(out, network.Masked().String())
		} else if address, err := netip.ParseAddr(text); err == nil {
			address = address.Unmap()
			out = append(out, netip.PrefixFrom(address, address.BitLen()).String())
		} else {
			return nil, text
		}
	}
	return out, ""
}

// whitelisted is the older name of the allow list, and counts without the newer one.
func whitelisted(c *conversion, in *ingress, value string) (Verdict, string) {
	switch {
	case in.annotation("allowlist-source-range") != "":
		return NotNeeded, "allowlist-source-range has the last word"
	case in.Annotations[prefix+"whitelist-source-range"] == "":
		return NotNeeded, "it is empty"
	}
	return allowed(c, in, value)
}

func allowed(_ *conversion, in *ingress, value string) (Verdict, string) {
	return in.parts.addresses(allowRule, value, func(a *v1alpha1.AuthAddresses) *[]string { return &a.Allow })
}

func denied(_ *conversion, in *ingress, value string) (Verdict, string) {
	return in.parts.addresses(denyRule, value, func(a *v1alpha1.AuthAddresses) *[]string { return &a.Deny })
}

// The rules about addresses. Those of an Ingress take the place of the controller's, each list of its own kind.
const (
	allowRule = "allowed-addresses"
	denyRule  = "denied-addresses"
)

func (p *parts) addresses(rule, value string, of func(*v1alpha1.AuthAddresses) *[]string) (Verdict, string) {
	list, wrong := ranges(value)
	if wrong != "" {
		return NotPossible, fmt.Sprintf("%q is neither an address nor a network", wrong)
	}
	if len(list) == 0 {
		return NotPossible, "it is empty, by which ingress-nginx serves nobody"
	}
	if p.authorization[rule].Addresses == nil {
		p.authorize(rule, v1alpha1.Authorization{Addresses: &v1alpha1.AuthAddresses{}})
	}
	to := of(p.authorization[rule].Addresses)
	*to = append(*to, list...)
	return "", ""
}

func (p *parts) authorize(name string, rule v1alpha1.Authorization) {
	if p.authorization == nil {
		p.authorization = map[string]v1alpha1.Authorization{}
	}
	p.authorization[name] = rule
}

// basicAuth asks for names and passwords.
func basicAuth(c *conversion, in *ingress, value string) (Verdict, string) {
	if value != "basic" {
		return NotPossible, fmt.Sprintf("auth-type %s: %s, with basic, keys or tokens", value, byPolicy)
	}
	name := PasswordSecret(in.Ingress)
	if name == "" {
		if other := in.annotation("auth-secret"); other != "" {
			return NotPossible, fmt.Sprintf("the Secret %s is in another namespace than the Ingress: copy it", other)
		}
		return NotPossible, "auth-secret is missing"
	}
	if kind := cmp.Or(in.annotation("auth-secret-type"), "auth-file"); kind != "auth-file" {
		return NotPossible, fmt.Sprintf("auth-secret-type %s: write the users into one entry, auth, a line NAME:HASH for each, and name the type auth-file", kind)
	}
	in.parts.authentication = map[string]v1alpha1.Authentication{"people": {Basic: &v1alpha1.Basic{
		SecretRef: v1alpha1.KeyRef{Name: name, Key: "auth"}, Realm: in.annotation("auth-realm"), HideCredentials: true,
	}}}
	if users := c.unreadable(in.Namespace, name); len(users) > 0 {
		return Differs, fmt.Sprintf("AuthPolicy, basic; Secret %s has other hashes than {SHA} for %s, who can't pass until it is written with htpasswd -s", name, strings.Join(users, ", "))
	}
	return "", ""
}

// unreadable are the users of a Secret whose passwords are hashed in a way that Envoy doesn't read.
func (c *conversion) unreadable(namespace, name string) (users []string) {
	for _, s := range c.input.Secrets {
		if s.Namespace != namespace || s.Name != name {
			continue
		}
		text := string(s.Data["auth"]) + s.StringData["auth"]
		for line := range strings.Lines(text) {
			user, hash, ok := strings.Cut(strings.TrimSpace(line), ":")
			if ok && !strings.HasPrefix(hash, "{SHA}") {
				users = append(users, user)
			}
		}
	}
	return users
}

// clientCertificate asks clients for certificates. A Gateway has one authority for all its listeners, and
// routes say who needs one.
func clientCertificate(c *conversion, in *ingress, value string) (Verdict, string) {
	namespace, name, ok := strings.Cut(value, "/")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return NotPossible, fmt.Sprintf("%q is not NAMESPACE/NAME", value)
	}
	if c.closed.serving && namespace != in.Namespace {
		return NotPossible, anotherNamespace
	}
	secret := types.NamespacedName{Namespace: namespace, Name: name}
	needed := false
	switch in.annotation("auth-tls-verify-client") {
	case "optional":
	case "off":
		return NotNeeded, "auth-tls-verify-client is off"
	case "optional_no_ca":
		return Differs, "clients aren't asked for certificates that nobody verifies"
	default: // to ingress-nginx all else is on
		needed = true
	}
	switch {
	case c.authority != nil && *c.authority != secret:
		return NotPossible, fmt.Sprintf("the Gateway has the authority of Secret %s: have a Gateway of its own for this one (--gateway)", c.authority)
	case needed && in.annotation("auth-type") != "":
		return NotPossible, "a certificate and a password are both needed; an AuthPolicy has one of several"
	}
	c.authority = &secret
	if page := in.annotation("auth-tls-error-page"); page != "" && needed && isPage(page) {
		in.parts.errorPage = &page
	}
	if needed {
		in.parts.authentication = map[string]v1alpha1.Authentication{"certificate": {ClientCertificate: &v1alpha1.ClientCertificate{}}}
		return "", ""
	}
	return Differs, "tls.frontend of the Gateway: a certificate that can't be verified counts as none"
}

// spreadCertificates has all Ingresses of a host ask for what the host asks for: nginx verifies certificates
// for servers.
func (c *conversion) spreadCertificates(servers []*server) {
	for _, s := range servers {
		var by *ingress
		for _, l := range s.locations {
			if l.of.parts.authentication["certificate"].ClientCertificate != nil {
				by = l.of
			}
		}
		told := map[*ingress]bool{}
		for _, l := range s.locations {
			p := &l.of.parts
			if by == nil || told[l.of] || p.authentication["certificate"].ClientCertificate != nil {
				continue
			}
			f := Finding{Annotation: "auth-tls-secret", Verdict: Converted, Message: fmt.Sprintf("host %s needs certificates by Ingress %s, and so do all routes of this one", s.host, by.name())}
			if p.authentication != nil {
				f.Verdict, f.Opens, f.Message = NotPossible, true, fmt.Sprintf("host %s needs certificates by Ingress %s, and this one passwords; an AuthPolicy has one of several", s.host, by.name())
			} else {
				p.authentication = by.parts.authentication
			}
			told[l.of] = true
			c.find(l.of, f)
		}
	}
}

// satisfy is about who needs only one of addresses and credentials.
func satisfy(_ *conversion, in *ingress, value string) (Verdict, string) {
	allowed := in.annotation("allowlist-source-range") != "" || in.annotation("whitelist-source-range") != ""
	switch {
	case value != "any":
		return NotNeeded, "both are needed anyway"
	case in.annotation("auth-url") != "":
		return NotPossible, "the permission of auth-url is needed of all: stricter than any"
	case in.parts.authentication["people"].Basic == nil:
		return NotNeeded, "no credentials are asked for"
	case !allowed && in.annotation("denylist-source-range") == "":
		return NotNeeded, "all addresses are let through to where credentials are asked for"
	case !allowed: // nginx takes no address for enough by that
		return NotPossible, "credentials are needed, of denied addresses too, who are refused: stricter than any"
	}
	in.parts.either = true
	return "", ""
}

// eitherOf lets those pass who have a name and a password, or whose address is one of those that are let through.
func (p *parts) eitherOf() (responses *v1alpha1.AuthResponses) {
	if p.errorPage != nil {
		return &v1alpha1.AuthResponses{Unauthenticated: &v1alpha1.AuthResponse{Redirect: p.errorPage}}
	}
	_, limited := p.authorization[allowRule]
	people := p.authentication["people"].Basic
	if !p.either || !limited || people == nil {
		return nil
	}
	p.authentication["anybody"] = v1alpha1.Authentication{Anonymous: &v1alpha1.Anonymous{}}
	for _, name := range []string{allowRule, denyRule} {
		if rule, ok := p.authorization[name]; ok {
			rule.When = "!has(auth.client)"
			p.authorization[name] = rule
		}
	}
	challenge := fmt.Sprintf("Basic realm=%q", cmp.Or(people.Realm, "Authentication Required"))
	return &v1alpha1.AuthResponses{Forbidden: &v1alpha1.AuthResponse{
		Status: new(int32(401)), Headers: map[string]v1alpha1.ResponseHeader{"WWW-Authenticate": v1alpha1.ResponseHeader(challenge)},
	}}
}

// anotherNamespace is said where whoever may write an Ingress would have what is in another namespace.
const anotherNamespace = "it is in another namespace than the Ingress: write a Gateway API route and policy, with a ReferenceGrant there"

// told are the headers that a service decides by, mostly. nginx sends it all.
var told = []string{"Cookie", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Requested-With"}

// external asks a service, on one path for all questions.
func external(c *conversion, in *ingress, value string) (Verdict, string) {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || strings.Contains(value, "$") {
		return NotPossible, fmt.Sprintf("%q is no URL, or has variables: write an AuthPolicy with external", value)
	}
	name, rest, _ := strings.Cut(u.Hostname(), ".")
	namespace, rest, _ := strings.Cut(rest, ".")
	service := rest == "svc" || strings.HasPrefix(rest, "svc.") || rest == "" && (namespace == "" || c.hasService(namespace, name))
	if !service || u.Scheme != "http" || u.RawQuery != "" {
		return NotPossible, fmt.Sprintf("a Service of the cluster is asked, in clear and without a query: for %s write an AuthPolicy with external, "+
			"for a Service of type ExternalName with a BackendTLSPolicy", value)
	}
	port := portOf(u)
	ref := gwv1.BackendObjectReference{Name: gwv1.ObjectName(name), Port: &port}
	if namespace != "" && namespace != in.Namespace {
		if c.closed.serving {
			return NotPossible, anotherNamespace
		}
		ref.Namespace = new(gwv1.Namespace(namespace))
		c.grant(in.Namespace, namespace, name)
	}
	in.parts.authorize("service", v1alpha1.Authorization{External: &v1alpha1.ExternalAuth{
		Protocol: gwv1.HTTPRouteExternalAuthHTTPProtocol, BackendRef: ref,
		HTTP: &v1alpha1.ExternalAuthHTTP{ReplaceFullPath: cmp.Or(u.EscapedPath(), "/"), AllowedHeaders: told, AllowedResponseHeaders: words(in.annotation("auth-response-headers"))},
	}})
	return "", ""
}

// grant lets AuthPolicies of a namespace ask a Service of another one.
func (c *conversion) grant(from, in, service string) {
	key := "grant " + from + " " + in + " " + service
	if c.taken[key] {
		return
	}
	c.taken[key] = true
	o := &gwv1.ReferenceGrant{ObjectMeta: meta(in, from+"-asks-"+service)}
	o.Spec.From = []gwv1.ReferenceGrantFrom{{Group: gwv1.Group(v1alpha1.GroupVersion.Group), Kind: "AuthPolicy", Namespace: gwv1.Namespace(from)}}
	o.Spec.To = []gwv1.ReferenceGrantTo{{Kind: "Service", Name: new(gwv1.ObjectName(service))}}
	c.add(o)
}

// addAuthority has the Gateway verify clients' certificates, and let clients without one come as far as
// the policies of routes.
func (c *conversion) addAuthority(to *gwv1.Gateway) {
	if c.authority == nil {
		return
	}
	ref := gwv1.ObjectReference{Kind: "Secret", Name: gwv1.ObjectName(c.authority.Name)}
	if c.authority.Namespace != to.Namespace {
		ref.Namespace = new(gwv1.Namespace(c.authority.Namespace))
		o := &gwv1.ReferenceGrant{ObjectMeta: meta(c.authority.Namespace, to.Name+"-verifies-clients")}
		o.Spec.From = []gwv1.ReferenceGrantFrom{{Group: gwv1.GroupName, Kind: "Gateway", Namespace: gwv1.Namespace(to.Namespace)}}
		o.Spec.To = []gwv1.ReferenceGrantTo{{Kind: "Secret", Name: &ref.Name}}
		c.add(o)
	}
	to.Spec.TLS = &gwv1.GatewayTLSConfig{Frontend: &gwv1.FrontendTLSConfig{Default: gwv1.TLSConfig{Validation: &gwv1.FrontendTLSValidation{
		CACertificateRefs: []gwv1.ObjectReference{ref}, Mode: gwv1.AllowInsecureFallback,
	}}}}
}

// maxUnlimited is how many addresses a limit may leave out.
const maxUnlimited = 64

// unlimited are the addresses that limits are not for; wrong is why they can't be said.
func (in *ingress) unlimited() (list []string, wrong string) {
	text := in.annotation("limit-allowlist")
	if text == "" {
		text = in.annotation("limit-whitelist")
	}
	list, odd := ranges(text)
	switch {
	case odd != "":
		return nil, fmt.Sprintf("%q is neither an address nor a network", odd)
	case len(list) > maxUnlimited:
		return nil, fmt.Sprintf("a limit leaves out %d addresses at most", maxUnlimited)
	}
	return list, ""
}

// unlimited says whether addresses can be left out of limits, which are made by rate.
func unlimited(_ *conversion, in *ingress, _ string) (Verdict, string) {
	if in.annotation("limit-rps") == "" && in.annotation("limit-rpm") == "" {
		return NotNeeded, "nothing is limited"
	}
	if _, wrong := in.unlimited(); wrong != "" {
		return NotPossible, wrong + ": all addresses are limited, which is stricter than it was"
	}
	return "", ""
}

// rate limits how often an address may ask. nginx lets a burst through at once and then one request after
// the other; the window is as long as it takes to let a burst through.
func rate(kind, unit string) func(*conversion, *ingress, string) (Verdict, string) {
	return func(_ *conversion, in *ingress, value string) (Verdict, string) {
		limit, err := strconv.Atoi(value)
		if err != nil {
			return NotPossible, fmt.Sprintf("%q is no number: ingress-nginx serves nothing of the Ingress", value)
		}
		if limit <= 0 {
			return NotNeeded, "it limits nothing"
		}
		burst := 5
		if n, err := strconv.Atoi(in.annotation("limit-burst-multiplier")); err == nil && n >= 1 {
			burst = n
		}
		if burst > map[string]int{"s": 86_400, "m": 1440}[unit] {
			return NotPossible, "the burst is of more than a day"
		}
		if in.parts.limits == nil {
			in.parts.limits = map[string]v1alpha1.RateLimit{}
		}
		in.parts.limits[kind] = v1alpha1.RateLimit{
			Rates:    []v1alpha1.Rate{{Limit: int32(min(limit*burst, 1_000_000_000)), Window: gwv1.Duration(strconv.Itoa(burst) + unit)}}, //nolint:gosec // bounded
			Counters: []string{"client.address"}, Stage: v1alpha1.BeforeAuthentication,
		}
		if list, _ := in.unlimited(); len(list) > 0 {
			l := in.parts.limits[kind]
			l.Addresses = &v1alpha1.LimitAddresses{NotIn: list}
			in.parts.limits[kind] = l
		}
		return "", ""
	}
}
