package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/gatehouse-dev/gatehouse/test/visit"
)

// provider is an OpenID Provider at which everybody has logged in already. It asks for nothing, and so is
// no measure of what logging in takes.
type provider struct {
	server *httptest.Server
}

const loginClient, loginSecret = "bench", "secret-of-bench"

func startProvider() (*provider, error) {
	mux := http.NewServeMux()
	p := &provider{httptest.NewServer(mux)}
	token, keys, err := signed(p.server.URL, loginClient)
	if err != nil {
		p.server.Close()
		return nil, err
	}
	answers := map[string]any{
		"/.well-known/openid-configuration": map[string]any{
			"issuer": p.server.URL, "authorization_endpoint": p.server.URL + "/authorize", "token_endpoint": p.server.URL + "/token",
			"jwks_uri": p.server.URL + "/keys",
		},
		"/keys":  json.RawMessage(keys),
		"/token": map[string]any{"access_token": "any", "token_type": "Bearer", "expires_in": 3600, "id_token": token},
	}
	for path, answer := range answers {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer)
		})
	}
	return p, nil
}

func (p *provider) stop() { p.server.Close() }

// session logs in at a host as a browser does, and returns the header with the cookies of the session.
func session(ctx context.Context, address, host string) (string, error) {
	client := &http.Client{
		Timeout:       visit.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}},
	}
	led, cookies, err := follow(ctx, client, "http://"+host+"/", "")
	if err != nil {
		return "", err
	}
	query := url.Values{"code": {"any"}, "state": {led.Query().Get("state")}}
	_, cookies, err = follow(ctx, client, led.Query().Get("redirect_uri")+"?"+query.Encode(), cookies)
	return cookies, err
}

// follow asks for a page, and returns where it leads to, and the header with the cookies that it sets.
func follow(ctx context.Context, client *http.Client, page, header string) (led *url.URL, cookies string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, "", err
	}
	if _, line, ok := strings.Cut(header, ": "); ok {
		req.Header.Set("Cookie", line)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	if err := res.Body.Close(); err != nil {
		return nil, "", err
	}
	var set []string
	for _, c := range res.Cookies() {
		if c.MaxAge >= 0 && c.Value != "" && c.Value != "deleted" {
			set = append(set, c.Name+"="+c.Value)
		}
	}
	if led, err = res.Location(); err != nil || len(set) == 0 {
		return nil, "", errors.Join(fmt.Errorf("%s is answered %d, with %d cookies", page, res.StatusCode, len(set)), err)
	}
	return led, "Cookie: " + strings.Join(set, "; "), nil
}
