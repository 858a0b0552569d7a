package auth

import (
	"cmp"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	callbackPath = "/oauth2/callback"
	logoutPath   = "/oauth2/logout"

	maxClientSecret = 4096
)

// Login is how people log in by a rule. What the issuer itself has to say is missing.
type Login struct {
	ir.Login
	Secret ir.Sensitive // the client's
	// host is who answers at the token endpoint, without the host's name, where no reference says
	// who does.
	host ir.Backend
}

// login reads how people log in.
func (r *reader) login(name string, in *v1alpha1.OIDC) Rule {
	before := len(r.Problems)
	l := &Login{Login: ir.Login{
		Policy: object.Name{Namespace: r.namespace, Name: r.policy}, Created: r.created,
		ClientID: in.ClientID, Scopes: slices.Clone(in.Scopes), Forward: in.ForwardAccessToken,
		CallbackPath: cmp.Or(in.CallbackPath, callbackPath), LogoutPath: cmp.Or(in.LogoutPath, logoutPath),
		PostLogout: in.PostLogoutRedirect,
	}}
	if in.ClientID == "" || strings.ContainsFunc(in.ClientID, unicode.IsControl) {
		r.Problem(".oidc.clientID", "is missing, or has control characters")
	}
	for i, scope := range in.Scopes {
		// scope-token (RFC 6749, section 3.3)
		if scope == "" || strings.ContainsFunc(scope, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }) {
			r.Problem(".oidc.scopes["+strconv.Itoa(i)+"]", "is %q, which is no scope", scope)
		}
	}
	callback := ".oidc.callbackPath"
	if in.RedirectURL != "" {
		callback = r.redirectURL(l, in)
	}
	r.proxyPath(callback, l.CallbackPath)
	r.proxyPath(".oidc.logoutPath", l.LogoutPath)
	r.cookieDomain(in.CookieDomain)
	if !strings.HasPrefix(cmp.Or(l.PostLogout, "/"), "/") && !isURL(l.PostLogout) || !isText(l.PostLogout) || strings.Contains(l.PostLogout, "%") {
		r.Problem(".oidc.postLogoutRedirect", "is %q; it must be a URL of HTTP, or a path, without percent signs", l.PostLogout)
	}
	if l.CallbackPath == l.LogoutPath {
		r.Problem(".oidc.logoutPath", "is %q, and so is callbackPath; they must be different", l.LogoutPath)
	}
	l.Secret = r.clientSecret(&in.ClientSecretRef)
	out := Rule{LogsIn: true, CookieDomain: in.CookieDomain}
	claims, _ := r.claimsToHeaders(".oidc.claimsToHeaders", in.ClaimsToHeaders, &out.Headers)
	if in.BackendRef != nil {
		l.Backend, _ = r.refer(".oidc.backendRef", ir.UseHTTP, in.BackendRef)
	} else {
		l.host = ir.Backend{
			Object: object.Key{Kind: kind.AuthPolicy, Name: l.Policy}, Protocol: ir.HTTP1, Outside: !r.world.AnyName,
		}
		if !r.world.SystemAuthorities.IsZero() {
			l.host.TLS.Authorities = r.world.SystemAuthorities
		} else if strings.HasPrefix(in.Issuer, "https:") {
			r.Problem(".oidc.backendRef", "is missing, and there is no file with authorities of the system by which the provider could be known")
		}
	}
	fetched := r.fetched(keyset.Location{Issuer: in.Issuer}, ".oidc", false)
	if fetched == nil || len(r.Problems) > before {
		return out
	}
	l.Session = ir.LoginSession{
		Secret: object.Name{Namespace: r.namespace, Name: in.ClientSecretRef.Name}, Entry: clientEntry(&in.ClientSecretRef), Client: clientKeyOf(in),
		Domain: in.CookieDomain,
	}
	out.Login, out.Fetched = l, fetched
	out.Token = &ir.TokenIssuer{Name: name, Issuer: in.Issuer, Audiences: []string{in.ClientID}, Headers: claims}
	return out
}

// redirectURL reads the one URL of a callback, and returns the field that has its path.
func (r *reader) redirectURL(l *Login, in *v1alpha1.OIDC) (field string) {
	field = ".oidc.redirectURL"
	u, err := url.Parse(in.RedirectURL)
	if err != nil || !isURL(in.RedirectURL) || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		r.Problem(field, "is %q, which is no URL such as https://login.example.com%s", in.RedirectURL, callbackPath)
		return field
	}
	if in.CallbackPath != "" {
		r.Problem(".oidc.callbackPath", "stands beside redirectURL, which has the callback's path: leave it out")
	}
	if host := strings.ToLower(u.Hostname()); in.CookieDomain != "" && host != in.CookieDomain && !strings.HasSuffix(host, "."+in.CookieDomain) {
		r.Problem(field, "is %q, whose host isn't in cookieDomain %q: nobody would have a session there", in.RedirectURL, in.CookieDomain)
	}
	l.RedirectURL, l.CallbackPath = in.RedirectURL, u.EscapedPath()
	return field
}

func isURL(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// cookieDomain checks the domain of cookies. Browsers take none for a name of one label or an address.
func (r *reader) cookieDomain(domain string) {
	if domain == "" {
		return
	}
	_, err := netip.ParseAddr(domain)
	if err == nil || !strings.Contains(domain, ".") || len(validation.IsDNS1123Subdomain(domain)) > 0 {
		r.Problem(".oidc.cookieDomain", "is %q; it must be a domain such as example.com, of two labels at least", domain)
	}
}

// clientKeyOf tells apart whom people may log in to.
func clientKeyOf(in *v1alpha1.OIDC) string {
	sum := sha256.Sum256([]byte(in.Issuer + "\n" + in.ClientID)) // no issuer has a line break
	return hex.EncodeToString(sum[:8])
}

// clientEntry is the entry of a Secret that has the secret of a client.
func clientEntry(ref *v1alpha1.KeyRef) string { return cmp.Or(ref.Key, clientKey) }

// proxyPath checks a path that the proxy itself answers: one that means the same to everybody.
func (r *reader) proxyPath(field, path string) {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._~/-", c)
	}
	odd := path == "/" || !strings.HasPrefix(path, "/") || strings.ContainsFunc(path, func(c rune) bool { return !plain(c) })
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		odd = odd || segment == "." || segment == ".." || segment == ""
	}
	if odd {
		r.Problem(field, "is %q; it must be a path such as %s, of letters, digits and ._~-", path, callbackPath)
	}
}

// clientSecret reads the secret of a client; empty where there is none.
func (r *reader) clientSecret(ref *v1alpha1.KeyRef) ir.Sensitive {
	const field = ".oidc.clientSecretRef"
	data, ok := r.secret(field, ref.Name)
	if !ok {
		return ""
	}
	key := clientEntry(ref)
	text, ok := data[key]
	if !ok {
		r.Problem(field, "names Secret %s/%s, which has no entry %q%s", r.namespace, ref.Name, key, condition.Have(slices.Sorted(maps.Keys(data))))
		return ""
	}
	secret := clientSecretOf(text)
	if secret == "" {
		r.Problem(field, "names Secret %s/%s, whose entry %q is no secret of a client: it is empty, longer than %d bytes, or has other than ASCII's printable characters",
			r.namespace, ref.Name, key, maxClientSecret)
	}
	return secret
}

// clientSecretOf reads the secret of a client; empty for what can be none.
func clientSecretOf(text []byte) ir.Sensitive {
	secret := strings.TrimRight(string(text), "\r\n")
	if len(secret) > maxClientSecret || strings.ContainsFunc(secret, func(c rune) bool { return c < ' ' || c > '~' }) {
		return ""
	}
	return ir.Sensitive(secret)
}

// onlyLogin notes what can't stand together in a policy: people are led to one place.
func (r *reader) onlyLogin(in map[string]v1alpha1.Authentication) {
	var logins []string
	anonymous := false
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if in[name].OIDC != nil {
			logins = append(logins, name)
		}
		anonymous = anonymous || in[name].Anonymous != nil
	}
	if len(logins) > 1 {
		r.Problem(".authentication["+logins[1]+"].oidc", "is the second one, after that of %q; people can log in at one provider, and nobody does by this rule", logins[0])
	}
	if len(logins) > 0 && anonymous {
		r.Problem(".authentication["+logins[0]+"].oidc", "leads nobody to log in, since a rule beside it is anonymous")
	}
}

// with returns how people log in at an issuer of which the rest is known; nil where it isn't.
func (l *Login) with(tokens ir.TokenIssuer, e keyset.Endpoints) *ir.Login {
	if !e.LogIn() {
		return nil
	}
	out := l.Login
	out.Tokens, out.Authorization, out.EndSession, out.Token, out.Posted = tokens, e.Authorization, e.EndSession, e.Token, e.Posted
	if out.Backend.IsZero() {
		if out.Backend = l.answering(e.Token); out.Backend.IsZero() {
			return nil
		}
	}
	return &out
}

// answering returns who answers at a URL that has been checked; zero for nobody who could be known.
func (l *Login) answering(text string) ir.BackendKey {
	u, err := url.Parse(text)
	if err != nil {
		return ir.BackendKey{}
	}
	b := l.host
	b.DNS, b.Port = strings.ToLower(u.Hostname()), 80
	if b.Outside && ir.LocalName(b.DNS) != "" {
		return ir.BackendKey{} // as with routes: such a name needs a Service
	}
	if u.Scheme == "https" {
		if b.TLS.Authorities.IsZero() {
			return ir.BackendKey{}
		}
		b.Port, b.TLS.ServerName = 443, b.DNS
		b.TLS.Names = ir.ListOf(ir.CertificateName{DNS: b.DNS})
	} else {
		b.TLS = ir.BackendTLS{}
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil && port > 0 {
		b.Port = int32(port)
	}
	b.TargetPort = b.Port
	return b.Key()
}

// LoginSecret returns the text of a secret that sessions need, from the data of the Secret that has the
// client's; empty for none. The key that encrypts them is made of the client's secret, so that all
// proxies and all controllers have the same, and none of them has to keep it.
func LoginSecret(data map[string][]byte, s ir.LoginSession, encrypts bool) ir.Sensitive {
	secret := clientSecretOf(data[s.Entry])
	if secret == "" || !encrypts {
		return secret
	}
	key, err := hkdf.Key(sha256.New, []byte(secret.Reveal()), nil, "gatehouse session "+s.String(), sha256.Size)
	if err != nil {
		return "" // sessions without a key are none
	}
	return ir.Sensitive(hex.EncodeToString(key))
}

// Logins yields how people log in by the policy, with the field that says so.
func (p *Policy) Logins(set Sets, yield func(field string, l *ir.Login)) {
	p.Fetches(func(field string, l keyset.Location, r *Rule) {
		if r.Login == nil {
			return
		}
		answer, _ := set(l)
		if login := r.Login.with(*r.Token, answer.Endpoints); login != nil {
			yield(field, login)
		}
	})
}
