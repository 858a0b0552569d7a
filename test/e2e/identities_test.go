//go:build linux

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/sha1" //nolint:gosec // htpasswd has no other hash that is read
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

var (
	identityRequests = flag.Int("identity-requests", 2000, "how many requests TestIdentities sends")
	identityPolicies = flag.Int("identity-policies", 24, "of how many policies it asks")
	identitySeed     = flag.Uint64("identity-seed", 1, "which policies and requests these are")
)

// place is where in a request a credential can be.
type place struct{ Header, Prefix, Query, Cookie string }

func (p place) json() map[string]any {
	out := map[string]any{}
	for name, value := range map[string]string{"header": p.Header, "prefix": p.Prefix, "query": p.Query, "cookie": p.Cookie} {
		if value != "" {
			out[name] = value
		}
	}
	return out
}

var places = []place{
	{Header: "Authorization", Prefix: "Bearer "},
	{Header: "Authorization", Prefix: "Token "},
	{Header: "X-Token"},
	{Header: "X-Key"},
	{Query: "t"},
	{Query: "k"},
	{Cookie: "s"},
	{Cookie: "c"},
}

// inBasic is where passwords are.
var inBasic = place{Header: "Authorization", Prefix: "Basic "}

// credential is a token, a key, or a name with a password: good for a rule of its source, or for none.
type credential struct {
	text           string
	source         string // issuer, Secret with keys or with passwords; empty if it is good for nobody
	audience, role string
	who            string
}

// identityRule is a rule of authentication as the oracle knows it.
type identityRule struct {
	name, kind, source string
	audience           string // empty for any
	from               []place
	header, roleHeader string
	hide, named        bool
}

// identityCondition is a rule of authorization.
type identityCondition struct {
	role    string
	clients []string
	when    string
}

type identityPolicy struct {
	name       string
	rules      []identityRule // sorted by name
	anonymous  bool
	conditions []identityCondition
}

// identityRequest is a request with what it says of who sends it.
type identityRequest struct {
	has    map[place][]credential // several are in as many headers of the name
	client string                 // the name in the certificate, if it is good
	as     int                    // whose certificate is shown
	forged map[string]string
}

// verdict is what becomes of a request.
type verdict struct {
	status int
	told   map[string]string // identity headers of the backend
	hidden place             // what it must not have; zero for nothing
}

const machine = "m1.machines.example"

// judge is the oracle. It follows the guide, "Which credential counts", and nothing of the code.
func (p *identityPolicy) judge(r *identityRequest) verdict {
	v := verdict{status: http.StatusOK, told: map[string]string{}}
	var token, client *credential
	known := false
	for _, kind := range []string{"jwt", "apiKey", "basic", "clientCertificate"} {
		for _, rule := range p.rules {
			if rule.kind != kind || known {
				continue
			}
			if kind == "clientCertificate" {
				if r.client != "" {
					known, client = true, &credential{who: r.client}
					v.tell(rule.header, r.client)
				}
				continue
			}
			for _, at := range rule.from {
				good := slices.DeleteFunc(slices.Clone(r.has[at]), func(c credential) bool {
					return c.source != rule.source || rule.audience != "" && c.audience != rule.audience
				})
				if known || len(good) == 0 || kind == "jwt" && len(good) < len(r.has[at]) {
					continue
				}
				known = true
				c := &good[0]
				if v.tell(rule.header, c.who); kind == "jwt" {
					token = c
					v.tell(rule.roleHeader, c.role)
				} else {
					client = c
				}
				if rule.hide {
					v.hidden = at
				}
			}
		}
	}
	if !known && !p.anonymous && len(p.rules) > 0 {
		return verdict{status: http.StatusUnauthorized}
	}
	for _, c := range p.conditions {
		switch {
		case c.when == "has(auth.claims)" && token == nil, c.when == "has(auth.client)" && client == nil:
		case c.role != "" && (token == nil || token.role != c.role), c.clients != nil && (client == nil || !slices.Contains(c.clients, client.who)):
			return verdict{status: http.StatusForbidden}
		}
	}
	return v
}

func (v *verdict) tell(header, value string) {
	if header != "" && value != "" {
		v.told[header] = value
	}
}

// identities are what policies and requests are drawn from.
type identities struct {
	*rand.Rand
	keySets   map[string]string // by issuer
	all       map[string][]credential
	passwords string
}

func newIdentities(t *testing.T, seed uint64) *identities {
	t.Helper()
	w := &identities{
		Rand:    rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // no secret
		keySets: map[string]string{}, all: map[string][]credential{},
	}
	stranger := newIdentityKey(t)
	for _, issuer := range []string{"https://id.example", "https://other.example"} {
		key := newIdentityKey(t)
		set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k"}}})
		if err != nil {
			t.Fatal(err)
		}
		w.keySets[issuer] = string(set)
		for _, who := range []string{"alice", "erin"} {
			for _, audience := range []string{"shop", "else"} {
				for _, role := range []string{"admin", "user", ""} {
					claims := map[string]any{"iss": issuer, "aud": audience, "email": who, "exp": time.Now().Add(time.Hour).Unix()}
					if role != "" {
						claims["role"] = role
					}
					good := credential{signedBy(t, key, claims), issuer, audience, role, who}
					foreign := credential{text: signedBy(t, stranger, claims)}
					claims["exp"] = time.Now().Add(-time.Hour).Unix()
					old := credential{text: signedBy(t, key, claims)}
					w.all["jwt"] = append(w.all["jwt"], good, good, foreign, old, credential{text: good.text[:len(good.text)-4]}, credential{text: "a.b.c"})
				}
			}
		}
	}
	w.all["apiKey"] = []credential{
		{text: "k-alice", source: "keys-a", who: "alice"},
		{text: "k-bob", source: "keys-a", who: "bob"},
		{text: "k-carol", source: "keys-b", who: "carol"},
		{text: "k-admin", source: "keys-b", who: "alice"},
		{text: "k-nobody"},
	}
	for user, password := range map[string]string{"dave": "pass", "alice": "word"} {
		sum := sha1.Sum([]byte(password)) //nolint:gosec // as above
		w.passwords += user + ":{SHA}" + base64.StdEncoding.EncodeToString(sum[:]) + "\n"
	}
	w.all["basic"] = []credential{
		{text: base64.StdEncoding.EncodeToString([]byte("dave:pass")), source: "people", who: "dave"},
		{text: base64.StdEncoding.EncodeToString([]byte("alice:word")), source: "people", who: "alice"},
		{text: base64.StdEncoding.EncodeToString([]byte("alice:pass"))},
	}
	return w
}

func newIdentityKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signedBy(t *testing.T, key *ecdsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (w *identities) chance(percent int) bool { return w.IntN(100) < percent }

func oneOf[T any](w *identities, list ...T) T { return list[w.IntN(len(list))] }

func (w *identities) policy(name string) *identityPolicy {
	p := &identityPolicy{name: name, anonymous: w.chance(20)}
	names := []string{"a", "b", "c", "d"}
	w.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:1+w.IntN(4)] {
		r := identityRule{name: name, kind: oneOf(w, "jwt", "jwt", "apiKey", "apiKey", "basic", "clientCertificate")}
		for _, i := range w.Perm(len(places))[:1+w.IntN(3)] {
			r.from = append(r.from, places[i])
		}
		r.header, r.hide = oneOf(w, "X-Client", "X-User", "X-Who", ""), w.chance(30)
		switch r.kind {
		case "jwt":
			r.source = oneOf(w, slices.Sorted(maps.Keys(w.keySets))...)
			r.audience, r.roleHeader = oneOf(w, "", "shop"), oneOf(w, "", "X-Role")
		case "apiKey":
			r.source = oneOf(w, "keys-a", "keys-b")
		case "basic":
			r.source, r.from = "people", []place{inBasic}
		case "clientCertificate":
			r.from, r.hide, r.named = nil, false, w.chance(50)
		}
		p.rules = append(p.rules, r)
	}
	slices.SortFunc(p.rules, func(a, b identityRule) int { return strings.Compare(a.name, b.name) })
	for range w.IntN(3) {
		c := identityCondition{when: oneOf(w, "", "has(auth.claims)", "has(auth.client)")}
		if c.when == "has(auth.claims)" || c.when == "" && w.chance(50) {
			c.role = "admin"
		} else {
			c.clients = []string{"alice", "dave", machine}
		}
		p.conditions = append(p.conditions, c)
	}
	return p
}

// manifest is a route with the policy, in JSON, which is YAML.
func (w *identities) manifest(t *testing.T, p *identityPolicy) string {
	t.Helper()
	authentication, authorization := map[string]any{}, map[string]any{}
	if p.anonymous {
		authentication["anyone"] = map[string]any{"anonymous": map[string]any{}}
	}
	for _, r := range p.rules {
		said := map[string]any{}
		var from []any
		for _, at := range r.from {
			from = append(from, at.json())
		}
		switch r.kind {
		case "jwt":
			said["issuer"], said["jwks"] = r.source, map[string]any{"inline": w.keySets[r.source]}
			if r.audience != "" {
				said["audiences"] = []string{r.audience}
			}
			var headers []any
			for claim, header := range map[string]string{"email": r.header, "role": r.roleHeader} {
				if header != "" {
					headers = append(headers, map[string]any{"claim": claim, "header": header})
				}
			}
			if headers != nil {
				said["claimsToHeaders"] = headers
			}
		case "apiKey", "basic":
			said["secretRef"] = map[string]any{"name": r.source}
		case "clientCertificate":
			if r.named {
				said["subjectAltNames"] = []any{map[string]any{"dns": "*.machines.example"}, map[string]any{"dns": machine}}
			}
		}
		if r.kind != "jwt" && r.header != "" {
			said["identityHeader"] = r.header
		}
		if r.kind == "jwt" || r.kind == "apiKey" {
			said["from"] = from
		}
		if r.hide {
			said["hideCredentials"] = true
		}
		authentication[r.name] = map[string]any{r.kind: said}
	}
	for i, c := range p.conditions {
		said := map[string]any{}
		if c.role != "" {
			said["claims"] = map[string]any{"role": []string{c.role}}
		}
		if c.clients != nil {
			said["clients"] = c.clients
		}
		if c.when != "" {
			said["when"] = c.when
		}
		authorization["z"+strconv.Itoa(i)] = said
	}
	said := map[string]map[string]any{"authentication": authentication}
	if len(authorization) > 0 {
		said["authorization"] = authorization
	}
	var spec strings.Builder
	for _, name := range slices.Sorted(maps.Keys(said)) {
		text, err := json.Marshal(said[name])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&spec, "%s: %s\n", name, text)
	}
	return siteRoute(p.name, p.name+".example", "v1") + authPolicy(p.name, "kind: HTTPRoute, name: "+p.name, spec.String())
}

// request is one to a policy: most of its credentials are such as the policy looks for, in places where it does.
func (w *identities) request(p *identityPolicy) *identityRequest {
	r := &identityRequest{has: map[place][]credential{}, forged: map[string]string{}}
	for range oneOf(w, 0, 1, 2, 2, 2, 3) {
		rule := p.rules[w.IntN(len(p.rules))]
		kind, at := oneOf(w, "jwt", "apiKey", "basic"), places[w.IntN(len(places))]
		if w.chance(80) && rule.from != nil {
			kind, at = rule.kind, rule.from[w.IntN(len(rule.from))]
		}
		if kind == "basic" {
			at = inBasic
		} else if at == inBasic {
			continue
		}
		if at.Header == "Authorization" { // which a request has once
			maps.DeleteFunc(r.has, func(other place, _ []credential) bool { return other.Header == at.Header })
		}
		r.has[at] = []credential{oneOf(w, w.all[kind]...)}
		if at.Header != "" && at.Prefix == "" && w.chance(20) {
			r.has[at] = append(r.has[at], oneOf(w, w.all[kind]...))
		}
	}
	switch r.as = oneOf(w, 0, 0, 1, 2); r.as {
	case 1:
		r.client = machine
	}
	for _, header := range []string{"X-Client", "X-User", "X-Who", "X-Role"} {
		if w.chance(20) {
			r.forged[oneOf(w, header, strings.Replace(header, "-", "_", 1), strings.ToLower(header))] = "admin"
		}
	}
	return r
}

// send sends a request by a client of each certificate.
func (r *identityRequest) send(clients []*http.Transport, host string) (int, *echo.Answer, error) {
	query, header := url.Values{}, http.Header{}
	var cookies []string
	for at, list := range r.has {
		for _, c := range list {
			switch {
			case at.Header != "":
				header.Add(at.Header, at.Prefix+c.text)
			case at.Query != "":
				query.Add(at.Query, c.text)
			default:
				cookies = append(cookies, at.Cookie+"="+c.text)
			}
		}
	}
	if cookies != nil {
		header.Set("Cookie", strings.Join(cookies, "; "))
	}
	for name, value := range r.forged {
		header[name] = []string{value}
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/?"+query.Encode(), nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header = header
	res, err := clients[r.as].RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	answer := &echo.Answer{}
	if res.StatusCode == http.StatusOK {
		err = json.NewDecoder(res.Body).Decode(answer)
	}
	if closed := res.Body.Close(); err == nil {
		err = closed
	}
	return res.StatusCode, answer, err
}

// still reports whether a backend was sent what is in a place.
func still(a *echo.Answer, at place) bool {
	switch {
	case at.Header != "":
		return a.Headers.Get(at.Header) != ""
	case at.Query != "":
		return strings.Contains("&"+a.Query, "&"+at.Query+"=")
	case at.Cookie != "":
		return strings.Contains("; "+strings.Join(a.Headers["Cookie"], "; "), "; "+at.Cookie+"=")
	}
	return false
}

// mixed reports whether a place of tokens has a bad one beside a good one: such a request may be refused.
func (p *identityPolicy) mixed(r *identityRequest) bool {
	return slices.ContainsFunc(p.rules, func(rule identityRule) bool {
		return rule.kind == "jwt" && slices.ContainsFunc(rule.from, func(at place) bool { return len(r.has[at]) > 1 })
	})
}

// differs says in what an answer differs from the verdict; empty for in nothing.
func (p *identityPolicy) differs(r *identityRequest, want verdict, status int, a *echo.Answer) string {
	switch {
	case status == http.StatusOK && want.status != http.StatusOK:
		return "let through"
	case status == http.StatusUnauthorized && p.mixed(r):
		return ""
	case status != want.status:
		return "refused otherwise"
	case status != http.StatusOK:
		return ""
	}
	told := map[string]string{}
	for name, values := range a.Headers {
		like := http.CanonicalHeaderKey(strings.NewReplacer("_", "-", ".", "-").Replace(name))
		if slices.ContainsFunc(p.rules, func(r identityRule) bool { return like == r.header || like == r.roleHeader }) {
			told[like] += strings.Join(values, ", ")
		}
	}
	switch {
	case !maps.Equal(told, want.told):
		return fmt.Sprintf("told wrongly %v", told)
	case still(a, want.hidden):
		return "not hidden"
	}
	return ""
}

// TestIdentities sends random requests with several identities at once to random AuthPolicies, and compares what
// becomes of them, and whom the backend is told of, with what the guide says.
func TestIdentities(t *testing.T) {
	t.Parallel()
	w := newIdentities(t, *identitySeed)
	var manifests strings.Builder
	policies := make([]*identityPolicy, *identityPolicies)
	for i := range policies {
		policies[i] = w.policy(fmt.Sprintf("p%d", i))
		manifests.WriteString(w.manifest(t, policies[i]))
	}
	passwords, err := json.Marshal(w.passwords)
	if err != nil {
		t.Fatal(err)
	}
	const verifies = `  tls: {frontend: {default: {validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}}
`
	s := newSite(t, map[string]string{
		"cert.yaml": mustSecret(t, "cert", "*.example"), "clients.yaml": caManifest(clientAuthority, siteNamespace, "clients"),
		"gateway.yaml": siteGateway("{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}") + verifies,
		"secrets.yaml": keysSecret("keys-a", "alice: k-alice, bob", "k-bob") + keysSecret("keys-b", "carol: k-carol, alice", "k-admin") +
			keysSecret("people", ".htpasswd", string(passwords)),
		"policies.yaml": manifests.String(),
	})
	named := func(c *x509.Certificate) { c.DNSNames = []string{machine} }
	var clients []*http.Transport
	for _, shown := range []*pair{nil, new(clientWith(clientAuthority, named)), new(clientWith(otherAuthority, named))} {
		c := s.client(t, "", 443)
		if shown != nil {
			c.shows(t, *shown)
		}
		transport := &http.Transport{
			TLSClientConfig: c.config, MaxIdleConnsPerHost: 4, TLSHandshakeTimeout: callTimeout,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, c.address)
			},
			TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		}
		t.Cleanup(transport.CloseIdleConnections)
		clients = append(clients, transport)
	}
	// A policy that isn't in force yet refuses: wait until each lets somebody pass whom it should.
	for _, p := range policies {
		for range 1000 {
			r := w.request(p)
			if p.judge(r).status != http.StatusOK {
				continue
			}
			eventually(t, siteTimeout, func() error {
				status, _, err := r.send(clients, p.name+".example")
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("%+v is answered %d by %+v", r, status, p)
				}
				return err
			})
			break
		}
	}
	type trial struct {
		policy  *identityPolicy
		request *identityRequest
	}
	var mu sync.Mutex
	wrong, passed, several := map[string]int{}, 0, 0
	todo := make(chan trial)
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for x := range todo {
				want := x.policy.judge(x.request)
				status, answer, err := x.request.send(clients, x.policy.name+".example")
				what := ""
				if err != nil {
					what = "failed: " + err.Error()
				} else {
					what = x.policy.differs(x.request, want, status, answer)
				}
				mu.Lock()
				if status == http.StatusOK {
					passed++
				}
				if len(x.request.has) > 1 || len(x.request.has) == 1 && x.request.client != "" {
					several++
				}
				if what != "" {
					kind, _, _ := strings.Cut(what, ":")
					if wrong[kind]++; len(wrong) <= 5 && wrong[kind] == 1 {
						t.Errorf("%s: status %d, want %+v\nrequest %+v\npolicy %+v", what, status, want, *x.request, *x.policy)
					}
				}
				mu.Unlock()
			}
		})
	}
	for i := range *identityRequests {
		p := policies[i%len(policies)]
		todo <- trial{p, w.request(p)}
	}
	close(todo)
	senders.Wait()
	t.Logf("%d requests to %d policies, %d with several identities, %d passed, seed %d: wrong are %v",
		*identityRequests, len(policies), several, passed, *identitySeed, wrong)
}
