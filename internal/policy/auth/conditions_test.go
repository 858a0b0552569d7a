package auth

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

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
