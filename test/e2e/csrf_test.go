//go:build linux

package e2e

import (
	"net/http"
	"testing"
)

// TestCSRF protects that requests which change something come from pages of the host, or of origins that may.
func TestCSRF(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	s.write(t, "policy.yaml", authPolicy("forms", onGateway, "authorization: {forms: {csrf: {allowedOrigins: ['https://admin.example:8443']}}}"))
	s.conditions(t, "AuthPolicy forms", "gw", "Programmed=True")
	s.answers(t, homeURL, http.StatusOK)
	for origin, want := range map[string]int{
		"":                                  http.StatusForbidden,
		"null":                              http.StatusForbidden,
		"http://home.example":               http.StatusOK,
		"https://home.example":              http.StatusOK,
		"https://admin.example:8443":        http.StatusOK,
		"https://admin.example":             http.StatusForbidden,
		"http://admin.example:8443":         http.StatusForbidden,
		"https://home.example:8443":         http.StatusForbidden,
		"https://evil.example":              http.StatusForbidden,
		"https://evilhome.example":          http.StatusForbidden,
		"https://home.example.evil.test":    http.StatusForbidden,
		"evil://home.example":               http.StatusForbidden,
		"https://evil.example/home.example": http.StatusForbidden,
	} {
		headers := map[string]string{}
		if origin != "" {
			headers["Origin"] = origin
		}
		if got := s.send(t, homeURL, http.NoBody, headers).status; got != want {
			t.Errorf("from %q: %d, want %d", origin, got, want)
		}
	}
	// Beside other conditions, and with an exception for who has no cookies.
	s.write(t, "policy.yaml", authPolicy("programs", onGateway, "authorization: {forms: {when: \"'cookie' in request.headers\", csrf: {}}}"))
	s.conditions(t, "AuthPolicy programs", "gw", "Programmed=True")
	for _, c := range []struct {
		headers map[string]string
		want    int
	}{
		{nil, http.StatusOK},
		{map[string]string{"Cookie": "a=b"}, http.StatusForbidden},
		{map[string]string{"Cookie": "a=b", "Origin": "https://evil.example"}, http.StatusForbidden},
		{map[string]string{"Cookie": "a=b", "Origin": "http://home.example"}, http.StatusOK},
	} {
		if got := s.send(t, homeURL, http.NoBody, c.headers).status; got != c.want {
			t.Errorf("%v: %d, want %d", c.headers, got, c.want)
		}
	}
}
