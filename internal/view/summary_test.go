package view

import (
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TestSampleCall protects the commands to try: what they ask gets through.
func TestSampleCall(t *testing.T) {
	named := func(service, method string) gwv1.GRPCRouteMatch {
		return gwv1.GRPCRouteMatch{Method: &gwv1.GRPCMethodMatch{Service: &service, Method: &method}}
	}
	regex := named("a.*", "b.*")
	regex.Method.Type = new(gwv1.GRPCMethodMatchRegularExpression)
	withHeader := gwv1.GRPCRouteMatch{Headers: []gwv1.GRPCHeaderMatch{{Name: "a", Value: "b"}}}
	for name, test := range map[string]struct {
		matches []gwv1.GRPCRouteMatch
		want    string
	}{
		"no matches":    {nil, "list"},
		"everything":    {[]gwv1.GRPCRouteMatch{named("a.A", "Get"), {}}, "list"},
		"a method":      {[]gwv1.GRPCRouteMatch{withHeader, regex, named("a.A", "Get"), named("b.B", "Get")}, "a.A/Get"},
		"a service":     {[]gwv1.GRPCRouteMatch{named("a.A", "")}, "a.A/METHOD"},
		"a method only": {[]gwv1.GRPCRouteMatch{named("", "Get")}, "SERVICE/Get"},
		"nothing plain": {[]gwv1.GRPCRouteMatch{withHeader, regex}, ""},
	} {
		r := &gwv1.GRPCRoute{Spec: gwv1.GRPCRouteSpec{Rules: []gwv1.GRPCRouteRule{{Matches: test.matches}}}}
		if got := sampleCall(r); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := sampleCall(&gwv1.HTTPRoute{}); got != "" {
		t.Errorf("an HTTPRoute has the call %q", got)
	}
}
