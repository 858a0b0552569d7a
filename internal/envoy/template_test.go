package envoy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Each variable has an operator.
func TestOperators(t *testing.T) {
	for _, v := range ir.Variables {
		if operators[v] == "" {
			t.Errorf("%s has none", v)
		}
	}
}

// A direct answer has its body, up to the largest one, and its content type.
func TestEnvoyDirectBody(t *testing.T) {
	large := strings.Repeat("0123456789abcde\n", ir.MaxBody/16)
	page := &ir.Rule{Match: prefix("/page"), Status: 503, Body: "<p>100 %</p>"}
	page.Filters.ResponseHeaders = &ir.HeaderChanges{Set: []ir.Header{{Name: "content-type", Value: "text/html"}}}
	r := plain(rulesOn("*", page, &ir.Rule{Match: prefix("/large"), Status: 200, Body: large})).start(t)
	if a := r.get(t, "http://a.example/page"); a.Status != http.StatusServiceUnavailable || a.Body != "<p>100 %</p>" || a.Header.Get("Content-Type") != "text/html" {
		t.Errorf("the page is %d %q, %v", a.Status, a.Body, a.Header)
	}
	if a := r.get(t, "http://a.example/large"); a.Status != http.StatusOK || a.Body != large {
		t.Errorf("the large one is %d with %d bytes", a.Status, len(a.Body))
	}
}
