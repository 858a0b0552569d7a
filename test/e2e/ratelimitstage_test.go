//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"testing"
)

const (
	peoplePolicy = "authentication: {people: {basic: {secretRef: {name: people}}}}"
	adasPassword = "{SHA}0nofEXcSAJSXFLGvmfBIpBb11vQ=" // of "right"
)

// login sends a request with ada's name and a password from an address of this machine.
func (s *site) login(t *testing.T, from, password string) int {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%s:%d/", s.address, 80+portOffset), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "home.example"
	req.SetBasicAuth("ada", password)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestLimitOfGuessers protects that who tries passwords gets no answer to them after a few, be all his
// requests counted or those alone that were refused, and that others may log in meanwhile.
func TestLimitOfGuessers(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{"people.yaml": keysSecret("people", ".htpasswd", "'ada:"+adasPassword+"'")})
	s.write(t, "policy.yaml", authPolicy("people", onHome, peoplePolicy))
	s.says(t, "AuthPolicy people", "All rules of the policy are in force")
	const right = "right"
	for i, c := range []struct {
		what, limits string
		counts       bool // logins that succeed, too
	}{
		{"local", "limits: {each: {stage: BeforeAuthentication, rates: [{limit: 4, window: 24h}], counters: [client.address]}}", true},
		{"shared", "limits: {each: {stage: BeforeAuthentication, scope: Global, onFailure: Deny, rates: [{limit: 4, window: 24h}], counters: [client.address]}}", true},
		{"some", "limits: {each: {stage: BeforeAuthentication, rates: [{limit: 4, window: 24h}], counters: [client.address], when: \"request.path == '/'\"}}", true},
		{"refused", "limits: {each: {cost: {statuses: [401, 403]}, rates: [{limit: 4, window: 24h}], counters: [client.address]}}", false},
		{"refused-some", "limits: {each: {cost: {statuses: [401]}, rates: [{limit: 4, window: 24h}], counters: [client.address], when: \"request.path == '/'\"}}", false},
	} {
		guesser, user := fmt.Sprintf("127.0.9.%d", 10+2*i), fmt.Sprintf("127.0.9.%d", 11+2*i)
		s.write(t, "limits.yaml", limitPolicy(c.what, onHome, c.limits))
		s.says(t, "RateLimitPolicy "+c.what, "All rules of the policy are in force")
		for n := range 4 {
			if got := s.login(t, guesser, "wrong"); got != http.StatusUnauthorized {
				t.Errorf("%s: guess %d is answered %d", c.what, n, got)
			}
		}
		eventually(t, siteTimeout, func() error { // the last one is counted when its answer has ended
			if got := s.login(t, guesser, right); got != http.StatusTooManyRequests {
				return fmt.Errorf("%s: after too many guesses the right password is answered %d", c.what, got)
			}
			return nil
		})
		want := http.StatusOK
		for n := range 6 {
			if c.counts && n == 4 {
				want = http.StatusTooManyRequests
			}
			if got := s.login(t, user, right); got != want {
				t.Errorf("%s: login %d from another address is answered %d, want %d", c.what, n, got, want)
			}
		}
		s.remove(t, "limits.yaml")
	}
	s.write(t, "limits.yaml", limitPolicy("unknown", onHome, "limits: {each: {stage: BeforeAuthentication, rates: [{limit: 4, window: 24h}], counters: [auth.client]}}"))
	s.says(t, "RateLimitPolicy unknown", "spec.limits[each].counters asks who a client is, which is not known before authentication")
}
