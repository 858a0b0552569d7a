package envoy

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// What clients and backends can say of Envoy's own matters: nothing.
func TestEnvoyEdgeHeaders(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	upstream := newBackend(t, "upstream", ir.HTTP1, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{
			"x-envoy-upstream-service-time", "x-envoy-immediate-health-check-fail", "x-envoy-decorator-operation",
			"x-envoy-overloaded", "x-envoy-anything", "x-other",
		} {
			w.Header().Set(name, "1")
		}
	}))
	r := plain(rulesOn("a.example",
		&ir.Rule{Match: prefix("/upstream"), Backends: to(upstream)},
		&ir.Rule{Match: prefix("/rewrite"), Backends: to(b), Filters: ir.Filters{Rewrite: &ir.Rewrite{
			Hostname: "b.example", Path: &ir.PathRewrite{Value: "/x"},
		}}},
		&ir.Rule{
			Match:    ir.Match{Path: ir.PathMatch{Kind: ir.PathPrefix, Value: "/key"}, Headers: []ir.ValueMatch{{Name: "api_key", Value: "k"}}},
			Backends: to(b),
		},
		&ir.Rule{Match: prefix("/"), Backends: to(b)},
	), b, upstream).start(t)

	lost := []string{
		"X-Envoy-Attempt-Count", "X-Envoy-Is-Timeout-Retry", "X-Envoy-Original-Path", "X-Envoy-Original-Host",
		"X-Envoy-External-Address", "X-Envoy-Internal", "X-Envoy-Expected-Rq-Timeout-Ms", "X-Envoy-Anything",
		"X_Forwarded_For", "X-Forwarded_For", "X_Forwarded-Proto", "X-Forwarded-Client_Cert", "X_Real_IP", "X_Request_Id",
		"Content_Length", "Transfer_Encoding", "X_Envoy_Retry_On",
		"Forwarded", "X-Real-Ip", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Scheme",
	}
	kept := []string{"Api_Key", "X_Tenant", "X-Envoyage", "_", "X-Forwarded-Hostess", "Content_Length_2", "Accept"}
	send := http.Header{"X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "X-Request-Id": {"client"}}
	for _, name := range append(slices.Clone(lost), kept...) {
		send[http.CanonicalHeaderKey(name)] = []string{"client"}
	}
	for _, path := range []string{"/", "/rewrite"} {
		a := r.do(t, http.MethodPost, "http://a.example"+path, send, []byte("body"))
		if a.Status != http.StatusOK || a.Seen.Body != len("body") {
			t.Fatalf("%s: %d, the backend saw %d bytes", path, a.Status, a.Seen.Body)
		}
		for name := range a.Seen.Header {
			if lower := strings.ToLower(name); strings.HasPrefix(lower, internalHeaders) {
				t.Errorf("%s: the backend sees %s: %v", path, name, a.Seen.Header[name])
			}
		}
		for _, name := range lost {
			if v := a.Seen.Header.Values(name); v != nil {
				t.Errorf("%s: the backend sees %s: %v", path, name, v)
			}
		}
		for _, name := range kept {
			if v := a.Seen.Header.Values(name); !slices.Equal(v, []string{"client"}) {
				t.Errorf("%s: the backend sees %s: %v", path, name, v)
			}
		}
		if id, proto := a.Seen.Header.Get("X-Request-Id"), a.Seen.Header.Get("X-Forwarded-Proto"); id == "" || id == "client" || proto != "http" {
			t.Errorf("%s: the backend sees request %q by %q", path, id, proto)
		}
		// The client's own address, though it is loopback.
		if diff := cmp.Diff([]string{"192.0.2.7,127.0.0.1"}, a.Seen.Header.Values("X-Forwarded-For")); diff != "" {
			t.Errorf("%s: X-Forwarded-For (-want +got):\n%s", path, diff)
		}
	}
	if got := r.get(t, "http://a.example/").Seen.Header.Get("X-Forwarded-For"); got != "127.0.0.1" {
		t.Errorf("X-Forwarded-For without one of the client: %q", got)
	}
	a := r.do(t, http.MethodGet, "http://a.example/key", http.Header{"Api_key": {"k"}}, nil)
	if a.Seen.Header.Get("Api_key") != "k" {
		t.Errorf("a match of a name with an underscore: %d, %v", a.Status, a.Seen.Header)
	}

	a = r.get(t, "http://a.example/upstream")
	for name := range a.Header {
		if strings.HasPrefix(strings.ToLower(name), internalHeaders) {
			t.Errorf("the client sees %s: %v", name, a.Header[name])
		}
	}
	if a.Header.Get("X-Other") != "1" {
		t.Errorf("the client sees %v", a.Header)
	}
}
