package expression

import (
	"strings"
	"testing"
)

// What is wrong with an expression is told with its place; nothing else is accepted than what
// Envoy has.
func TestCondition(t *testing.T) {
	for text, want := range map[string]string{
		`request.path.startsWith('/admin') && request.method != 'GET'`:   "",
		`request.host == 'a.example' || request.query.contains('x=')`:    "",
		`request.headers['X-Tenant'] in ['a', 'b']`:                      "",
		`has(auth.claims.role) && auth.claims.role == 'admin'`:           "",
		`has(auth.client) && has(auth.claims) && has(request.headers.a)`: "",
		`has(auth.nobody)`: "column 10: auth.nobody: there is no nobody in auth; there are claims, client",
		`'x-a' in request.headers && auth.claims['https://x/n'] > 3.5`:       "",
		`auth.claims.groups.size() > 1 ? true : auth.client == 'bob'`:        "",
		`request.path.matches('^/v[0-9]+/') && -1 < 2`:                       "",
		`request.path.startsWith('/admin'`:                                   "column 33: Syntax error: missing ')' at '<EOF>'",
		`request.path.startsWith(1)`:                                         "column 24: found no matching overload for 'startsWith' applied to 'string.(int)'",
		`request.path`:                                                       "column 1: the expression is of type string; it must be true or false",
		`auth.claims.admin`:                                                  "column 1: the expression is of type dyn",
		"true &&\n  request.pth == ''":                                       "line 2, column 11: request.pth: there is no pth in request; there are headers, host, method, path, query",
		`request.headerz['a'] == ''`:                                         "column 9: request.headerz: there is no headerz in request",
		`request['path'] == ''`:                                              "column 1: undeclared reference to 'request'; there are request.path",
		`source.address == ''`:                                               "column 1: undeclared reference to 'source'",
		`metadata.filter_metadata['x']['y'] == 'z'`:                          "column 1: undeclared reference to 'metadata'",
		`auth.claims.roles.exists(r, r == 'a')`:                              "undeclared reference to 'exists'",
		`request.path + 'a' == 'b'`:                                          "undeclared reference to '_+_'",
		`string(1) == '1'`:                                                   "undeclared reference to 'string'",
		`request.path.lowerAscii() == ''`:                                    "undeclared reference to 'lowerAscii'",
		`request.path.matches(request.query)`:                                "column 29: what matches looks for must stand in the expression",
		`request.headers.a.contains(request.headers.b)`:                      "what contains looks for must stand in the expression",
		`request.path.matches('(')`:                                          "column 22: \"(\" is no regular expression",
		`request.path.matches('^.{40}')`:                                     "too large for Envoy",
		`request.path.matches('\\pL')`:                                       "is no regular expression that can be used here",
		`request.path.matches('[a-z]{90}x{90}')`:                             "too large for Envoy",
		`{'a': true}['a']`:                                                   "Envoy has no such expressions",
		``:                                                                   "column 1: Syntax error",
		strings.Repeat("(", 100) + "true" + strings.Repeat(")", 100):         "column",
		strings.Repeat("true?true:(", 40) + "true" + strings.Repeat(")", 40): "stand more than 24 deep",
		strings.Repeat("a", 5000):                                            "at most 1024",
	} {
		_, err := Condition(text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%.60s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

// Reading is bounded by the text, and what has been read is kept for those who ask again.
func TestKnown(t *testing.T) {
	a, err := Condition("request.path == '/known'")
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := Condition("request.path == '/known'"); a != b {
		t.Error("read twice")
	}
}

func FuzzCondition(f *testing.F) {
	f.Add(`request.path.startsWith('/admin') && request.headers['X'] == "a" || has(auth.claims.b)`)
	f.Add(`request.host.matches('^(a|b)$') ? !(1 in [1, 2]) : "\u00e9" == r'\x'`)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Condition(text)
		if (e == nil) == (err == nil) {
			t.Fatal(e, err)
		}
		if err == nil {
			Not(e)
		}
	})
}
