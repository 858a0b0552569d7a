package re2

import "testing"

// What stands in for a pattern that can't be compiled takes all that the pattern can have
// been meant to take, and stands in its place of the order.
func TestWider(t *testing.T) {
	for pattern, beginning := range map[string]string{
		"/admin/[a-z":    "/admin/",
		"^/admin/(.*":    "/admin/",
		`/a\.b/(`:        "/a.b/",
		`/a\/b\d(`:       "/a/b",
		"/admins?/(":     "/admin",
		"/adminx*/(":     "/admin",
		"/adminx{2}/(":   "/admin",
		"/admin+/(":      "/admin",
		"/admin|/other(": "",
		"/admin(|/other": "",
		"/a(b|c){9999}":  "/a",
		"/a(b[|])c)|d":   "",
		"/a[|b":          "",
		"/a[|b]x(":       "/a",
		"(?i)/admin(":    "",
		".*admin(":       "",
		"[":              "",
		"":               "",
		`/ad\`:           "/ad",
		"/adé(":          "/ad",
		"/a//////////////////////////////////////////////////////////////(": "/a//////////////////////////////////////////////////////////////",
		"/admin/[a-zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz":     "/admin/",
	} {
		expression, got := Wider(pattern), Literal(pattern)
		if got != beginning {
			t.Errorf("%q begins with %q, want %q", pattern, got, beginning)
		}
		if _, err := Size(expression); err != nil {
			t.Errorf("instead of %q: %v", pattern, err)
		}
		if len(expression) < len(pattern) {
			t.Errorf("%q, instead of %q, goes behind it", expression, pattern)
		}
	}
}
