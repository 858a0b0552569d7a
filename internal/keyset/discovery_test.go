package keyset

import (
	"encoding/json"
	"testing"
)

// An endpoint that Envoy can't read is none: a policy has its host or its Gateway refused by it.
func TestEndpoints(t *testing.T) {
	const good = "https://id.example/x"
	for text, usable := range map[string]bool{
		good: true, "https://id.example:8443/x?a=b": true, "https://192.0.2.1/": true, "https://[2001:db8::1]:443/x": true, "https://[2001:db8::1]/x": true, "HTTPS://ID.example": true,
		"https://id.example:/x": false, "https://id.example:99999/x": false, "https://id.example:0/x": false, "https://i_d.example/x": false, "https://i!d.example/x": false,
		`https://i"d<x>.example/`: false, "https://[fe80::1%25eth0]/x": false, "https://[2001:db8::1]:/x": false, "https://id.example/ x": false, "https://id.example/\n": false,
	} {
		for field, read := range map[string]func(Endpoints) string{
			"authorization_endpoint": func(e Endpoints) string { return e.Authorization },
			"token_endpoint":         func(e Endpoints) string { return e.Token },
			"end_session_endpoint":   func(e Endpoints) string { return e.EndSession },
		} {
			in, err := json.Marshal(map[string]string{"issuer": good, "jwks_uri": good, field: text})
			if err != nil {
				t.Fatal(err)
			}
			_, e, why := Discovered(good, Public, in)
			if why != "" || (read(e) == text) != usable || !usable && read(e) != "" {
				t.Errorf("%s %q is taken as %q; %s", field, text, read(e), why)
			}
		}
	}
}
