package keyset

import "testing"

// A message shows where a URL leads, and nothing of it that may be private.
func TestTold(t *testing.T) {
	for text, want := range map[string]string{
		"https://id.example/jwks":             "https://id.example/jwks",
		"https://id.example":                  "https://id.example",
		"https://id.example:8443/a/b?key=s#s": "https://id.example:8443/a/b?…",
		"https://id.example?s":                "https://id.example?…",
		"https://user:s@id.example/a@b":       "https://…@id.example/a@b",
		"https://user:s@s@id.example/?":       "https://…@id.example/?…",
		"https://id.example/#s":               "https://id.example/",
		"user:s@id.example/a":                 "…@id.example/a",
		"staff":                               "staff",
		"https://id.example/\n":               "https://id.example/?",
		"":                                    "",
	} {
		if got := Told(text); got != want {
			t.Errorf("%q is told as %q, want %q", text, got, want)
		}
	}
}
