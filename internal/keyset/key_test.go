package keyset

import (
	"strings"
	"testing"
)

// What can't be fetched is refused before anybody tries, and says why.
func TestLocations(t *testing.T) {
	for _, c := range []struct {
		location Location
		reach    Reach
		want     string // a part of why not; empty for nothing
	}{
		{Location{URI: "https://id.example/jwks"}, Public, ""},
		{Location{URI: "https://id.example:8443/jwks?a=b"}, Public, ""},
		{Location{Issuer: "https://id.example"}, Public, ""},
		{Location{Issuer: "https://id.example/realms/shop/"}, Public, ""},
		{Location{URI: "http://localhost:8080/jwks"}, Host, ""},
		{Location{URI: "http://id.example/jwks"}, Public, "is no https URL"},
		{Location{URI: "http://id.example/jwks"}, Beyond([]Allowed{{Names: []string{"id.example"}}}), "is no https URL"},
		{Location{URI: "file:///etc/passwd"}, Host, "is no URL"},
		{Location{URI: "ftp://id.example/"}, Host, "is no https URL"},
		{Location{URI: "https://user:word@id.example/"}, Public, "has a user or a password"},
		{Location{URI: "https://id.example/#a"}, Public, "has a fragment"},
		{Location{URI: "https://id。example/"}, Public, "letters beyond ASCII"},
		{Location{URI: "https:///jwks"}, Public, "is no URL"},
		{Location{URI: "https://:443/jwks"}, Public, "is no URL"},
		{Location{URI: "jwks"}, Public, "is no URL"},
		{Location{URI: "https://id.example/" + strings.Repeat("a", maxURL)}, Public, "at most 2048"},
		{Location{Issuer: "staff"}, Public, "is no URL"},
		{Location{Issuer: ""}, Public, "is no URL"},
		{Location{Issuer: "https://id.example?a=b"}, Public, "without query and fragment"},
		{Location{Issuer: "https://id.example/#"}, Public, "has a fragment"},
	} {
		if got := c.location.Check(c.reach); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%+.60v: %q, want %q", c.location, got, c.want)
		}
	}
	for issuer, want := range map[string]string{
		"https://id.example":            "https://id.example/.well-known/openid-configuration",
		"https://id.example/realms/a/":  "https://id.example/realms/a/.well-known/openid-configuration",
		"https://id.example/realms/a/b": "https://id.example/realms/a/b/.well-known/openid-configuration",
	} {
		if got := (Location{Issuer: issuer}).URL(); got != want {
			t.Errorf("%s is asked at %s, want %s", issuer, got, want)
		}
	}
}
