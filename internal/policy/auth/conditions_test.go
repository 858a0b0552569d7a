package auth

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// Ranges are those of the addresses that clients have, however they are written.
func TestAddressRanges(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.0/24": "192.0.2.0/24", "192.0.2.7": "192.0.2.7/32", "2001:db8::1": "2001:db8::1/128", "::/0": "::/0",
		"::ffff:192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.0/120": "192.0.2.0/24", "::ffff:0:0/96": "0.0.0.0/0",
		"::ffff:192.0.2.0/64": "", "fe80::1%eth0": "", "192.0.2.0/33": "", "192.0.2": "", "office": "", "": "",
	} {
		got, ok := addressRange(text)
		if ok != (want != "") || ok && got.Masked().String() != want {
			t.Errorf("%q: %v %t, want %q", text, got, ok, want)
		}
	}
}

// What is no origin lets nobody pass.
func TestOrigins(t *testing.T) {
	for text, ok := range map[string]bool{
		"https://admin.example": true, "http://admin.example:8080": true, "https://admin.example/": false, "admin.example": false,
		"https://*.example": false, "https://Admin.example": false, "null": false, "": false, "https://a\nb": false,
	} {
		r := reader{}
		out := r.authorization(&v1alpha1.Authorization{CSRF: &v1alpha1.CSRF{AllowedOrigins: []string{text}}})
		if out.Never == ok || len(r.Problems) > 0 == ok {
			t.Errorf("%q: %+v, %v", text, out, r.Problems)
		}
	}
}
