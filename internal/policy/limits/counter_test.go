package limits

import (
	"fmt"
	"strings"
	"testing"
)

// Counters are what a person would guess, and all else is refused with what can be used.
func TestCounters(t *testing.T) {
	for text, want := range map[string]string{
		"client.address":                    "{ClientAddress  []}",
		"auth.client":                       "{ClientName  []}",
		"request.host":                      "{RequestHost  []}",
		"request.method":                    "{RequestMethod  []}",
		"request.path":                      "{RequestPath  []}",
		"request.headers['X-Tenant']":       "{RequestHeader x-tenant []}",
		`request.headers["x-tenant"]`:       "{RequestHeader x-tenant []}",
		"auth.claims.sub":                   "{TokenClaim  [sub]}",
		"auth.claims.realm.roles":           "{TokenClaim  [realm roles]}",
		"auth.claims.example.test/tenant":   "{TokenClaim  [example.test/tenant]}",
		"auth.claims.https://example/x":     "!name that can't be counted by",
		"auth.claims.a..b":                  "!name that can't be counted by",
		"auth.claims.":                      "!name that can't be counted by",
		"request.headers[':path']":          "!name that can't be counted by",
		"request.headers['host']":           "!use request.host",
		"request.headers['a)b%']":           "!name that can't be counted by",
		"request.headers['']":               "!name that can't be counted by",
		"request.headers['a' + 'b']":        "!use client.address, auth.client",
		"request.headers.x":                 "!use client.address, auth.client",
		"source.address":                    "!use client.address, auth.client",
		"":                                  "!use client.address, auth.client",
		"request.headers['x'] || client.ip": "!use client.address, auth.client",
	} {
		c, why := counter(text)
		got := fmt.Sprint(c)
		if wrong, ok := strings.CutPrefix(want, "!"); ok {
			if !strings.Contains(why, wrong) {
				t.Errorf("%q: %v, %q, want %q", text, c, why, wrong)
			}
		} else if got != want || why != "" {
			t.Errorf("%q: %v, %q, want %v", text, c, why, want)
		}
	}
}
