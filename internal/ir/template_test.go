package ir

import (
	"slices"
	"strings"
	"testing"
)

// What a template says is text and variables, and nothing else is taken for one.
func TestParseTemplate(t *testing.T) {
	for text, want := range map[string][]Piece{
		"":                     nil,
		"plain $1 $ {x} %REQ%": {{Text: "plain $1 $ {x} %REQ%"}},
		"${request.path}":      {{Variable: VariablePath}},
		"a$${request.path}b":   {{Text: "a${request.path}b"}},
		"a${request.headers.X-A}${request.query.q_1}-": {
			{Text: "a"}, {Variable: VariableHeader, Name: "x-a"}, {Variable: VariableQuery, Name: "q_1"}, {Text: "-"},
		},
	} {
		if got, err := ParseTemplate(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"${request.pth}":           "there is no ${request.pth}; there are ${request.path}",
		"${}":                      "there is no ${}",
		"${request.path":           "has no } behind it",
		"${request.headers.}":      "has no name",
		"${request.headers}":       "has no name",
		"${request.headers.a)%b}":  "has no name",
		"${request.query.a%REQ(b}": "has no name",
		"${request.path.x}":        "there is no",
	} {
		if _, err := ParseTemplate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}
