package keyset

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
)

// FuzzDiscovered feeds what an issuer may answer as its configuration.
func FuzzDiscovered(f *testing.F) {
	const issuer = "https://id.example"
	for _, seed := range []string{
		`{"issuer": "https://id.example", "jwks_uri": "https://id.example/jwks"}`,
		`{"issuer": "https://id.example/", "jwks_uri": "https://id.example/jwks"}`,
		`{"issuer": "https://id.example", "jwks_uri": 7}`, `{"issuer": null, "jwks_uri": "x"}`, `{"jwks_uri": "x"}`, `{"Issuer": "https://id.example"}`,
		`{"issuer": "a\u0000\u001b[31m\n"}`, `{"issuer": "` + strings.Repeat("é", 999) + `"}`, `<html>`, ``, `[]`, `null`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		uri, e, why := Discovered(issuer, Public, []byte(text))
		if (uri == "") == (why == "") {
			t.Fatalf("%q: %q, %q", text, uri, why)
		}
		if why != "" {
			messagetest.Check(t, why, messagetest.Most)
			return
		}
		for _, endpoint := range []string{e.Authorization, e.Token, e.EndSession} {
			if u, err := url.Parse(endpoint); endpoint != "" && (err != nil || u.Scheme != "https" || u.Host == "" || strings.ContainsAny(endpoint, " \r\n\x00")) {
				t.Errorf("%q has the endpoint %q", text, endpoint)
			}
		}
		// What is accepted is of this issuer, to the letter.
		var in map[string]any
		if err := json.Unmarshal([]byte(text), &in); err != nil {
			t.Errorf("%q is accepted: %v", text, err)
		}
	})
}

// FuzzAge feeds values of Cache-Control: whatever they are, a set is neither asked for all
// the time nor used for ever.
func FuzzAge(f *testing.F) {
	for _, seed := range []string{
		"max-age=600", "public, max-age=600", "MAX-AGE=\"600\"", "no-store", "max-age=0", "max-age=-1", "max-age=99999999999999999999", "max-age", "max-age=,max-age=60",
		"s-maxage=1", ",,,", "max-age=600, max-age=1200", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		age := Age([]string{value})
		if age < LeastAge || age > MostAge {
			t.Errorf("%q: %s", value, age)
		}
		if !strings.Contains(strings.ToLower(value), "max-age") && !strings.Contains(strings.ToLower(value), "no-") && age != UsualAge {
			t.Errorf("%q: %s", value, age)
		}
	})
}

// FuzzCheckURL feeds URLs of policies, redirects and configurations: what is accepted is an
// https URL of a host that isn't the cluster's, and is the same when it is read again.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://id.example/jwks", "https://id.example:443", "http://id.example", "https://a@id.example", "https://127.0.0.1", "https://[::1]:80/", "https://id.example\\@localhost/",
		"https://localhost%2eexample/", "https://a.svc./", "//id.example", "https:id.example", "https://id.example%00.svc/", "https://ID.Example./#", "https://a。svc",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, why := Public.CheckURL(text)
		if why != "" {
			messagetest.Check(t, why, messagetest.Most)
			return
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Hostname() != u.Hostname() || u.Scheme != "https" || u.User != nil {
			t.Errorf("%q: %q, %v", text, u, err)
		}
		if host := hostOf(u.Hostname()); !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".local") {
			t.Errorf("%q leads to %s", text, host)
		}
	})
}
