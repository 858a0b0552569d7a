package keyset

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// Of a key set the public keys that sign are left, and nothing else.
func TestPublicKeys(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // as people have them
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: ec, KeyID: "private"}, {Key: ec.Public(), KeyID: "other", Use: "enc"}, {Key: weak.Public(), KeyID: "weak"}, {Key: []byte("x"), KeyID: "shared"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	set, problems := Parse(text)
	if !strings.Contains(set, `"private"`) || strings.Contains(set, `"d"`) || strings.Contains(set, "other") || strings.Contains(set, "weak") {
		t.Errorf("public keys: %s", set)
	}
	if got := fmt.Sprint(problems); !strings.Contains(got, "1024 bits") || !strings.Contains(got, "kty oct") || len(problems) != 2 {
		t.Errorf("problems: %s", got)
	}
	for _, bad := range []string{"", "[]", `{"keys": 7}`, `{"keys": [7]}`, `{"keys": []}`, `{"keys": [{"kty": "EC"}]}`, strings.Repeat(" ", MaxBytes+1)} {
		if set, problems := Parse([]byte(bad)); set != "" || len(problems) == 0 {
			t.Errorf("%.20q: %q, %q", bad, set, problems)
		}
	}
}
