package envoy

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Whatever credentials a request has, one client speaks: by conditions, and by what the backend is told.
func TestEnvoyAccessOneIdentity(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	id, other := newIssuer(t, "id"), newIssuer(t, "other")
	email := []ir.ClaimHeader{{Claim: []string{"email"}, Header: "x-email"}}
	places := id.trusted(t)
	places.From = append(places.From, ir.CredentialSource{Cookie: "session"}, ir.CredentialSource{Query: "token"}, ir.CredentialSource{Header: "x-token"})
	places.Headers = email
	second := other.trusted(t)
	second.From, second.Headers = []ir.CredentialSource{{Header: "x-other"}}, []ir.ClaimHeader{{Claim: []string{"email"}, Header: "x-other-email"}}
	keys := apiKeys("keys", map[string]string{"alice": "secret", "bob": "second"}, ir.CredentialSource{Header: "x-api-key"}, ir.CredentialSource{Query: "key"})
	more := apiKeys("more", map[string]string{"carol": "third"}, ir.CredentialSource{Header: "x-more"})
	people := passwordsOf(map[string]string{"dave": "pass"})
	people.Header, more.Header = "x-user", "x-more-client"
	all := ir.Access{
		Authenticated: true, Tokens: []ir.TokenIssuer{places, second}, Keys: []ir.APIKeys{keys, more}, Passwords: []ir.Passwords{people},
		Hidden: []string{"x-client", "x-email", "x-more-client", "x-other-email", "x-user"},
	}
	guarded := func(path string, optional bool, c ...ir.AccessCondition) *ir.Rule {
		a := all
		a.Authenticated, a.Conditions = !optional, c
		return &ir.Rule{Match: prefix(path), Filters: ir.Filters{Access: &a}, Backends: to(b)}
	}
	r := plain(rulesOn("a.example",
		guarded("/optional", true),
		guarded("/good", false, ir.AccessCondition{Name: "v", Claims: []ir.ClaimMatch{{Claim: []string{"verified"}, Values: []string{"true"}}}}),
		guarded("/alice", false, ir.AccessCondition{Name: "a", Clients: []string{"alice"}}),
		guarded("/when", false, ir.AccessCondition{Name: "w", Never: true, When: "has(auth.client) && auth.client == 'alice'"}),
		guarded("/", false),
	), b).start(t)
	token := func(i *issuer, who string, good bool) string {
		return i.token(t, map[string]any{"email": who, "verified": good})
	}
	erin, mallory, foreign := token(id, "erin", true), token(id, "mallory", false), token(other, "frank", true)
	bearer := func(text string) string { return "Bearer " + text }
	const bad = "a.b.c"
	for what, c := range map[string]struct {
		url    string
		header http.Header
		want   int
		told   string // the headers of identity that the backend has
	}{
		"one token":                        {"/", http.Header{"Authorization": {bearer(erin)}}, 200, "x-email=erin"},
		"another in a cookie":              {"/", http.Header{"Authorization": {bearer(erin)}, "Cookie": {"session=" + mallory}}, 200, "x-email=erin"},
		"the other way":                    {"/", http.Header{"Authorization": {bearer(mallory)}, "Cookie": {"session=" + erin}}, 200, "x-email=mallory"},
		"the other way, where it matters":  {"/good", http.Header{"Authorization": {bearer(mallory)}, "Cookie": {"session=" + erin}}, 403, ""},
		"the first one where it matters":   {"/good", http.Header{"Authorization": {bearer(erin)}, "Cookie": {"session=" + mallory}}, 200, "x-email=erin"},
		"a bad one before":                 {"/", http.Header{"Authorization": {bearer(bad)}, "Cookie": {"session=" + erin}}, 200, "x-email=erin"},
		"a bad one behind":                 {"/", http.Header{"Authorization": {bearer(erin)}, "Cookie": {"session=" + bad}}, 200, "x-email=erin"},
		"bad ones around":                  {"/?token=" + bad, http.Header{"Authorization": {bearer(bad)}, "Cookie": {"session=" + erin}}, 200, "x-email=erin"},
		"another's before":                 {"/", http.Header{"Authorization": {bearer(foreign)}, "Cookie": {"session=" + erin}}, 200, "x-email=erin"},
		"in a cookie and the query":        {"/?token=" + mallory, http.Header{"Cookie": {"session=" + erin}}, 200, "x-email=erin"},
		"one place twice":                  {"/", http.Header{"X-Token": {erin, mallory}}, 200, "x-email=erin"},
		"one place twice, once bad":        {"/", http.Header{"X-Token": {erin, bad}}, 401, ""},
		"one place twice, bad before":      {"/", http.Header{"X-Token": {bad, erin}}, 401, ""},
		"one place twice, where none need": {"/optional", http.Header{"X-Token": {foreign, erin}}, 401, ""},
		"one place twice, and a key":       {"/", http.Header{"X-Token": {bad, erin}, "X-Api-Key": {"secret"}}, 401, ""},
		"one place twice, and another":     {"/?token=" + mallory, http.Header{"X-Other": {bad, foreign}}, 200, "x-email=mallory"},
		"another before one place twice":   {"/", http.Header{"X-Token": {bad, erin}, "Authorization": {bearer(mallory)}}, 200, "x-email=mallory"},
		"another behind one place twice":   {"/", http.Header{"X-Token": {bad, erin}, "X-Other": {foreign}}, 200, "x-other-email=frank"},
		"a cookie twice":                   {"/", http.Header{"Cookie": {"session=" + erin + "; session=" + mallory}}, 200, "x-email=erin"},
		"two issuers":                      {"/", http.Header{"Authorization": {bearer(erin)}, "X-Other": {foreign}}, 200, "x-email=erin"},
		"two issuers, the first one's bad": {"/", http.Header{"Authorization": {bearer(bad)}, "X-Other": {foreign}}, 200, "x-other-email=frank"},
		"a token and a key":                {"/", http.Header{"Authorization": {bearer(erin)}, "X-Api-Key": {"secret"}}, 200, "x-email=erin"},
		"a token is no client":             {"/alice", http.Header{"Authorization": {bearer(erin)}, "X-Api-Key": {"secret"}}, 403, ""},
		"nor to expressions":               {"/when", http.Header{"Authorization": {bearer(erin)}, "X-Api-Key": {"secret"}}, 200, "x-email=erin"},
		"a key has no claims":              {"/good", http.Header{"Authorization": {bearer(bad)}, "X-Api-Key": {"secret"}}, 403, ""},
		"a bad token and a key":            {"/", http.Header{"Authorization": {bearer(bad)}, "X-Api-Key": {"secret"}}, 200, "x-client=alice"},
		"a token and a password":           {"/", http.Header{"Cookie": {"session=" + erin}, "Authorization": {basic("dave", "pass")}}, 200, "x-email=erin"},
		"two keys":                         {"/?key=second", http.Header{"X-Api-Key": {"secret"}}, 200, "x-client=alice"},
		"two keys, the first one bad":      {"/?key=second", http.Header{"X-Api-Key": {"bad"}}, 200, "x-client=bob"},
		"keys of two rules":                {"/", http.Header{"X-Api-Key": {"secret"}, "X-More": {"third"}}, 200, "x-client=alice"},
		"the second rule's":                {"/", http.Header{"X-Api-Key": {"bad"}, "X-More": {"third"}}, 200, "x-more-client=carol"},
		"a key and a password":             {"/", http.Header{"X-More": {"third"}, "Authorization": {basic("dave", "pass")}}, 200, "x-more-client=carol"},
		"a password":                       {"/", http.Header{"X-More": {"bad"}, "Authorization": {basic("dave", "pass")}}, 200, "x-user=dave"},
		"forged beside it":                 {"/", http.Header{"X-Email": {"a"}, "X_client": {"a"}, "X-User": {"a"}, "X-Api-Key": {"secret"}}, 200, "x-client=alice"},
		"forged by nobody":                 {"/optional", http.Header{"X-Email": {"a"}, "X_client": {"a"}, "X.User": {"a"}, "X-Token": {bad}}, 200, ""},
		"optional":                         {"/optional", http.Header{"Authorization": {bearer(erin)}, "X-Api-Key": {"secret"}}, 200, "x-email=erin"},
	} {
		a := r.do(t, http.MethodGet, "http://a.example"+c.url, c.header, nil)
		var told []string
		for name, values := range a.Seen.Header {
			if like := strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(name)); slices.Contains(all.Hidden, like) {
				for _, v := range values {
					told = append(told, like+"="+v)
				}
			}
		}
		if got := strings.Join(told, " "); a.Status != c.want || a.Status == 200 && got != c.told {
			t.Errorf("%s: %d, told %q; want %d, %q", what, a.Status, got, c.want, c.told)
		}
	}
}

// What a claim says is a header's value, of whichever name and type it is, and nothing more.
func TestEnvoyAccessClaimHeaders(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	id := newIssuer(t, "id")
	trusted := id.trusted(t)
	trusted.Headers = []ir.ClaimHeader{{Claim: []string{"https://app.test/tenant.name"}, Header: "x-a"}, {Claim: []string{"realm", "x"}, Header: "x-b"}}
	r := plain(rulesOn("a.example", &ir.Rule{Match: prefix("/"), Backends: to(b), Filters: ir.Filters{Access: &ir.Access{
		Tokens: []ir.TokenIssuer{trusted}, Hidden: []string{"x-a", "x-b"},
	}}}), b).start(t)
	realm := func(v any) map[string]any { return map[string]any{"realm": map[string]any{"x": v}} }
	for _, c := range []struct {
		what   string
		claims map[string]any
		header string
		want   []string
	}{
		{"a URL", map[string]any{"https://app.test/tenant.name": "blue"}, "X-A", []string{"blue"}},
		{"within", realm("text"), "X-B", []string{"text"}},
		{"a number", realm(1234567890123), "X-B", []string{"1234567890123"}}, {"a fraction", realm(1.5), "X-B", []string{"1.5"}}, {"below", realm(-3), "X-B", []string{"-3"}},
		{"a truth", realm(true), "X-B", []string{"true"}}, {"no truth", realm(false), "X-B", []string{"false"}},
		{"a list", realm([]string{"a"}), "X-B", nil}, {"an object", realm(map[string]any{"y": 1}), "X-B", nil}, {"null", realm(nil), "X-B", nil},
		{"empty", realm(""), "X-B", nil}, {"not inside of something", map[string]any{"realm": "x"}, "X-B", nil},
		{"a line break", realm("a\r\nX-A: forged"), "X-B", nil}, {"of another alphabet", realm("é"), "X-B", []string{"é"}},
	} {
		a := r.do(t, http.MethodGet, "http://a.example/", http.Header{"Authorization": {"Bearer " + id.token(t, c.claims)}, c.header: {"forged"}}, nil)
		if got := a.Seen.Header[c.header]; a.Status != 200 || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d %q, want %q", c.what, a.Status, got, c.want)
		}
	}
}
