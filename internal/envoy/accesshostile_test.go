package envoy

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// A hundred thousand constants are more than a function may have, and texts are texts.
func TestEnvoyAccessOfMany(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	many := map[string]string{}
	for i := range 30_000 {
		many[fmt.Sprintf("client-%d", i)] = fmt.Sprintf("key-%d", i)
	}
	hostile := "]]\"'\\\n\x00) end os.exit(1) --\xff"
	r := plain(rulesOn("a.example",
		&ir.Rule{Match: prefix("/many"), Filters: ir.Filters{Access: &ir.Access{Authenticated: true, Keys: []ir.APIKeys{apiKeys("k", many)}}}, Backends: to(b)},
		&ir.Rule{Match: prefix("/"), Backends: to(b), Filters: ir.Filters{Access: &ir.Access{
			Authenticated: true, Keys: []ir.APIKeys{apiKeys("k", map[string]string{"alice": "secret", "mallory" + hostile: hostile})},
			Passwords: []ir.Passwords{passwordsOf(map[string]string{hostile: "x", "carol": "y"})},
		}}},
	), b).start(t)
	for key, client := range map[string]string{"key-0": "client-0", "key-29999": "client-29999", "key-15000": "client-15000", "key-30000": ""} {
		a := r.do(t, http.MethodGet, "http://a.example/many", http.Header{"X-Api-Key": {key}}, nil)
		if got := a.Seen.Header.Get("X-Client"); got != client || (a.Status == 200) != (client != "") {
			t.Errorf("%s: %d, %q", key, a.Status, got)
		}
	}
	if a := r.do(t, http.MethodGet, "http://a.example/", http.Header{"X-Api-Key": {"secret"}}, nil); a.Status != 200 {
		t.Errorf("beside hostile texts: %d", a.Status)
	}
	if a := r.get(t, "http://a.example/"); a.Status != 401 {
		t.Errorf("without a key: %d", a.Status)
	}
}

// A script that fails lets nobody pass.
func TestEnvoyAccessFailsClosed(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	was := accessScript
	accessScript = "function envoy_on_request(handle) error('broken') end"
	defer func() { accessScript = was }()
	r := plain(rulesOn("a.example", &ir.Rule{Match: prefix("/"), Backends: to(b), Filters: ir.Filters{Access: &ir.Access{
		Authenticated: true, Keys: []ir.APIKeys{apiKeys("k", map[string]string{"alice": "secret"})},
	}}}), b).start(t)
	if a := r.do(t, http.MethodGet, "http://a.example/", http.Header{"X-Api-Key": {"secret"}}, nil); a.Status != http.StatusForbidden {
		t.Errorf("%d", a.Status)
	}
}
