package translate_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// What no schema has checked is checked all the same.
func TestRouteFilter(t *testing.T) {
	answer := func(status int32) v1alpha1.RouteFilterSpec {
		return v1alpha1.RouteFilterSpec{DirectResponse: &v1alpha1.DirectResponse{Status: status}}
	}
	rewrite := func(pattern, substitution string) v1alpha1.RouteFilterSpec {
		return v1alpha1.RouteFilterSpec{URLRewrite: &v1alpha1.URLRewrite{Path: &v1alpha1.RegexRewrite{Pattern: pattern, Substitution: substitution}}}
	}
	header := "x-envoy-upstream"
	for name, c := range map[string]struct {
		spec v1alpha1.RouteFilterSpec
		body string
		want string // empty for nothing
	}{
		"the largest body": {answer(503), strings.Repeat("x", ir.MaxBody), ""},
		"5 MB":             {answer(503), strings.Repeat("x", 5<<20), "has a body of 5242880 bytes; at most 65536 are sent"},
		"a status of 0":    {answer(0), "", "spec.directResponse.status is 0"},
		"a status of 600":  {answer(600), "", "spec.directResponse.status is 600"},
		"all of it":        {rewrite(`^/(a)$`, `\0/\1`), "", ""},
		"its slash":        {rewrite(`^/shop(/.*)$`, `\1`), "", ""},
		"a whole URL":      {rewrite(`^/(.*)$`, `\1`), "", "a path begins with /"},
		"a cookie": {v1alpha1.RouteFilterSpec{
			ResponseHeaders: &v1alpha1.HeaderTemplates{Set: []v1alpha1.HeaderTemplate{{Name: "x-a", Value: "${request.headers.Cookie}"}}},
		}, "", "doesn't come back in answers"},
		"a group too many": {rewrite(`^/(a)`, `/\2`), "", `has \2, and the last group of the pattern is \1`},
		"no groups":        {rewrite(`^/a`, `/\1`), "", `has \1, and the pattern has no groups`},
		"an open group":    {rewrite(`^/(a`, `/\1`), "", "is not an RE2 regular expression"},
		"a look behind":    {rewrite(`(?<=a)b`, `/c`), "", "is not an RE2 regular expression"},
		"a query":          {rewrite(`^/a`, `/b?c`), "", "has '?'"},
		"a line break":     {rewrite(`^/a`, "/b\r\nX: y"), "", `has '\r'`},
		"a header of Envoy's": {v1alpha1.RouteFilterSpec{
			URLRewrite: &v1alpha1.URLRewrite{Hostname: &v1alpha1.HostnameRewrite{Header: &header}},
		}, "", "spec.urlRewrite.hostname.header"},
		"a value of two lines": {v1alpha1.RouteFilterSpec{
			RequestHeaders: &v1alpha1.HeaderTemplates{Set: []v1alpha1.HeaderTemplate{{Name: "x-a", Value: "a\r\nb"}}},
		}, "", "spec.requestHeaders.set[0].value"},
	} {
		f := &topology.RouteFilter{Name: object.Name{Namespace: "default", Name: "f"}, Object: &v1alpha1.RouteFilter{Spec: c.spec}, Body: c.body}
		problems := strings.Join(translate.RouteFilter(f), "; ")
		if (c.want == "") != (problems == "") || !strings.Contains(problems, c.want) {
			t.Errorf("%s: %q, want %q", name, problems, c.want)
		}
	}
}
