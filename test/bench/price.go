package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the one hash of passwords that Envoy reads
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// priced is a policy whose price a request pays: what a route of its own has in force.
type priced struct {
	name     string
	manifest string // of the policy, and of what it refers to; %[1]s is the route's name
	header   string // what a request needs to be let through
	logsIn   bool   // to get that header
}

const (
	// without is the route that no policy is about.
	without = "none"
	// pricedRoutes is how many there are.
	pricedRoutes = 9
	target       = "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: %[1]s}]"
)

// pricedPolicies makes credentials of each kind. People log in at an issuer.
func pricedPolicies(issuer string) (all [pricedRoutes]priced, err error) {
	token, keys, err := signed("https://id.example.com", "any")
	if err != nil {
		return all, err
	}
	var ranges []string
	for i := range 100 {
		ranges = append(ranges, fmt.Sprintf("192.0.%d.0/24", i))
	}
	sum := sha1.Sum([]byte("secret")) //nolint:gosec // as above
	const (
		auth   = "apiVersion: gatehouse.dev/v1alpha1\nkind: AuthPolicy\nmetadata: {namespace: bench, name: %[1]s}\nspec:\n  " + target + "\n"
		limits = "apiVersion: gatehouse.dev/v1alpha1\nkind: RateLimitPolicy\nmetadata: {namespace: bench, name: %[1]s}\nspec:\n  " + target + "\n"
		secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {namespace: bench, name: %[1]s}\nstringData:\n"
		rates  = "rates: [{limit: 1000000000, window: 1h}], counters: [client.address]"
	)
	return [pricedRoutes]priced{
		{name: without},
		{
			name: "jwt", header: "Authorization: Bearer " + token,
			manifest: auth + "  authentication: {who: {jwt: {issuer: https://id.example.com, jwks: {inline: '" + keys + "'}}}}\n",
		},
		{
			name: "api-key", header: "X-API-Key: 7f0c2e1d8a9b4c53",
			manifest: auth + "  authentication: {who: {apiKey: {secretRef: {name: %[1]s}}}}\n" + secret + "  alice: 7f0c2e1d8a9b4c53\n",
		},
		{
			name:   "password",
			header: "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("alice:secret")),
			manifest: auth + "  authentication: {who: {basic: {secretRef: {name: %[1]s}}}}\n" + secret +
				"  .htpasswd: 'alice:{SHA}" + base64.StdEncoding.EncodeToString(sum[:]) + "'\n",
		},
		{
			name:     "addresses",
			manifest: auth + "  authorization: {from: {addresses: {allow: [127.0.0.0/8, " + strings.Join(ranges, ", ") + "]}}}\n",
		},
		{
			name: "expression", header: "X-Tenant: blue",
			manifest: auth + "  authorization: {of: {when: \"request.path.startsWith('/')\", headers: {x-tenant: [blue]}}}\n",
		},
		{name: "local-limit", manifest: limits + "  limits: {each: {" + rates + "}}\n"},
		{
			name: "session", logsIn: true,
			manifest: auth + "  authentication: {who: {oidc: {issuer: '" + issuer + "', clientID: " + loginClient + ", clientSecretRef: {name: %[1]s}}}}\n" +
				secret + "  client-secret: " + loginSecret + "\n",
		},
		{name: "global-limit", manifest: limits + "  limits: {each: {scope: Global, " + rates + "}}\n"},
	}, nil
}

// signed returns an issuer's token for somebody, and the key set that verifies it.
func signed(issuer, audience string) (token, keys string, err error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", "", err
	}
	own := jose.JSONWebKey{Key: key, KeyID: "bench", Algorithm: string(jose.RS256), Use: "sig"}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: own}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", "", err
	}
	claims := fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":"alice","exp":%d}`, issuer, audience, time.Now().Add(time.Hour).Unix())
	object, err := signer.Sign([]byte(claims))
	if err != nil {
		return "", "", err
	}
	if token, err = object.CompactSerialize(); err != nil {
		return "", "", err
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{own.Public()}})
	return token, string(set), err
}

// How many times each policy is asked, in turns: the machine is not always as fast.
const (
	priceRounds   = 40
	priceRequests = 100
)

// prices measures what policies add to a request, each on a route of its own beside one
// without any, by one client that keeps its connection.
func (b *real) prices(ctx context.Context) error {
	issuer, err := startProvider()
	if err != nil {
		return err
	}
	defer issuer.stop()
	all, err := pricedPolicies(issuer.server.URL)
	if err != nil {
		return err
	}
	return b.with(ctx, pricedRoutes, func(ctx context.Context, s *standalone, entries []entry) error {
		for i, p := range all {
			if p.manifest == "" {
				continue
			}
			file := filepath.Join(s.manifests(), "policy-"+p.name+".yaml")
			if err := os.WriteFile(file, fmt.Appendf(nil, p.manifest, entries[i].name()), 0o600); err != nil {
				return err
			}
		}
		if err := s.start(); err != nil {
			return err
		}
		var times [pricedRoutes][]time.Duration
		for i := range all {
			if err := b.guarded(ctx, s, &all[i], entries[i]); err != nil {
				return err
			}
		}
		c := clientOf(s.address())
		defer c.Close()
		for range priceRounds {
			for i, p := range all {
				c.header = p.header
				for n := range priceRequests {
					begin := time.Now()
					a, err := c.get(entries[i].host())
					if err != nil {
						return err
					}
					if a.status != http.StatusOK {
						return fmt.Errorf("with %s a request is answered with %d", p.name, a.status)
					}
					if n > priceRequests/10 { // the first ones find caches cold
						times[i] = append(times[i], time.Since(begin))
					}
				}
			}
		}
		base := milliseconds(percentile(sorted(times[0]), .5))
		b.report.add(requestPrice, pricedRoutes, without+"_ms", base)
		for i, p := range all[1:] {
			b.report.add(requestPrice, pricedRoutes, p.name+"_added_ms", milliseconds(percentile(sorted(times[i+1]), .5))-base)
		}
		return nil
	})
}

// guarded waits until a policy lets its requests through, and, where it looks at who they
// are from, no others.
func (b *real) guarded(ctx context.Context, s *standalone, p *priced, e entry) error {
	status := func(header string) (int, error) {
		c := clientOf(s.address())
		c.header = header
		defer c.Close()
		a, err := c.get(e.host())
		return a.status, err
	}
	return until(ctx, "the policy "+p.name, time.Minute, 50*time.Millisecond, func() (bool, error) {
		if err := s.alive(); err != nil {
			return false, err
		}
		if p.logsIn && p.header == "" {
			var err error
			if p.header, err = session(ctx, s.address(), e.host()); err != nil {
				return false, err
			}
		}
		if p.header != "" {
			if code, err := status(""); err != nil || code == http.StatusOK {
				return false, err
			}
		}
		code, err := status(p.header)
		return code == http.StatusOK, err
	})
}
