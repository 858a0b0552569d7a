package blueprint

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ template, data, want string }{
		{`{{ .a | upper }}, {{ .b | upper }}`, "a: hello\nb: world", "HELLO, WORLD"},
		{`TESTING, {{ range $i, $v := .list }}{{ if $i }} {{ end }}{{ $v | upper }}{{ end }}`, "list: [one, two, hello-three]", "TESTING, ONE TWO HELLO-THREE"},
		{"rules:\n{{ toYaml .rules | indent 2 }}", "rules: {a: 1, b: [x, z]}", "rules:\n  a: 1\n  b:\n  - x\n  - z"},
		{`{{ range until 3 }}{{ . }}{{ end }}`, "", "012"},
		{`{{ printf "%s-%s" .name (.name | sha1sum | substr 0 6) }}`, "name: edge", "edge-a0f2c6"},
	} {
		got, err := text(c.template, parsed(t, c.data))
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.template, got, err, c.want)
		}
	}
}

// TestTextIsBounded tries templates that have no end or a very large result, and functions that
// reach out of the template.
func TestTextIsBounded(t *testing.T) {
	for template, why := range map[string]string{
		`{{ .missing }}`: "no entry for key",
		`{{ $l := until 1000 }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}`: "too many steps",
		`{{ define "x" }}{{ template "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`:             "too many steps",
		`{{ until 1000000000 }}`:                              "too many steps",
		`{{ untilStep 0 1000000000 1 }}`:                      "too many steps",
		`{{ repeat 1000000000 "x" }}`:                         "too many steps",
		`{{ indent 1000000000 "x" }}`:                         "too many steps",
		`{{ range until 40000 }}some words and more{{ end }}`: "makes more than",
		`{{ env "HOME" }}`:                                    "not defined",
		`{{ now }}`:                                           "not defined",
		`{{ getHostByName "x" }}`:                             "not defined",
		`{{ genPrivateKey "rsa" }}`:                           "not defined",
		`{{ .a`:                                               "unclosed action",
	} {
		out, err := text(template, map[string]any{"a": "b"})
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, %d characters; want %q", template, err, len(out), why)
		}
	}
}

func TestHashName(t *testing.T) {
	long := strings.Repeat("a-very-long-name.", 5)
	if got := hashName("short", 31); got != "short" {
		t.Error(got)
	}
	got := hashName(long, 31)
	if len(got) > 31 || got == hashName(long+"x", 31) || !strings.HasPrefix(got, "a-very-long-name.a-ver") {
		t.Error(got)
	}
}
