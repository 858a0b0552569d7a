package cluster

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const webWithRoute = `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: r}, spec: {parentRefs: [{name: web}],
  rules: [{filters: [{type: RequestRedirect, requestRedirect: {hostname: there.example}}]}]}}`

// kinds are those that are known to have objects.
func (in *installed) kindsKept() []string {
	in.Helper()
	var o corev1.ConfigMap
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "gatehouse-system", Name: "gatehouse-settings"}, &o); client.IgnoreNotFound(err) != nil {
		in.Fatal(err)
	}
	return strings.Fields(o.Data[kindsKey])
}

// TestNothingIsTakenAwayAtTheStart protects what proxies serve from a controller that starts when the
// definition of a kind is gone, or the right to read it, or when it can't be listed.
func TestNothingIsTakenAwayAtTheStart(t *testing.T) {
	in := install(t)
	var answer, asked atomic.Int32
	in.asks = func(_ *replica, request *http.Request, next http.RoundTripper) (*http.Response, error) {
		status := int(answer.Load())
		if status == 0 || !strings.HasSuffix(request.URL.Path, "/httproutes") {
			return next.RoundTrip(request)
		}
		asked.Add(1)
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"as the test will have it","reason":"` + strings.ReplaceAll(http.StatusText(status), " ", "") + `"}`
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: request,
		}, nil
	}
	route := object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "team", Name: "r"}}
	r := in.start()
	in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web}, spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 80, protocol: HTTP}]}}`, webWithRoute)
	in.until("it is known that there are routes", func() bool { return slices.Contains(in.kindsKept(), "HTTPRoute") })
	if kinds := in.kindsKept(); slices.Contains(kinds, "TCPRoute") || !slices.Contains(kinds, "Gateway") || !slices.Contains(kinds, "Namespace") {
		t.Errorf("kinds with objects: %s", kinds)
	}
	r.end()
	for _, status := range []int32{http.StatusForbidden, http.StatusNotFound, http.StatusInternalServerError} {
		answer.Store(status)
		asked.Store(0)
		r := in.launch("gatehouse-system")
		in.until("routes are asked for again and again", func() bool { return asked.Load() >= 3 })
		if ok, _ := r.Ready(); ok || len(r.listenersOf(webGateway)) > 0 {
			t.Errorf("%d: it serves without routes: ready %t, %v", status, ok, r.listenersOf(webGateway))
		}
		answer.Store(0)
		in.until("it is ready", func() bool { ok, _ := r.Ready(); return ok })
		if r.source.Live(route) == nil || len(r.listenersOf(webGateway)) == 0 {
			t.Errorf("%d: it is ready without the route", status)
		}
		r.end()
	}

	// What has no objects any more is not waited for.
	r = in.start()
	if err := in.client.Delete(t.Context(), &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "r"}}); err != nil {
		t.Fatal(err)
	}
	in.until("it is known that there are no routes", func() bool { return !slices.Contains(in.kindsKept(), "HTTPRoute") })
	r.end()
	answer.Store(http.StatusForbidden)
	in.start()
}
