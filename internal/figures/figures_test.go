package figures

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	otlpcollectorv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	otlpcommonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	otlpmetricsv1 "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/gatehouse-dev/gatehouse/internal/figures/names"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const delta = otlpmetricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA

func attributes(of map[string]string) (out []*otlpcommonv1.KeyValue) {
	for key, value := range of {
		out = append(out, &otlpcommonv1.KeyValue{Key: key, Value: &otlpcommonv1.AnyValue{
			Value: &otlpcommonv1.AnyValue_StringValue{StringValue: value},
		}})
	}
	return out
}

func report(metrics ...*otlpmetricsv1.Metric) *otlpcollectorv1.ExportMetricsServiceRequest {
	return &otlpcollectorv1.ExportMetricsServiceRequest{ResourceMetrics: []*otlpmetricsv1.ResourceMetrics{{
		ScopeMetrics: []*otlpmetricsv1.ScopeMetrics{{Metrics: metrics}},
	}}}
}

func counted(how otlpmetricsv1.AggregationTemporality, n int64, of map[string]string) *otlpmetricsv1.Metric {
	return summed(names.Requests, how, n, of)
}

func summed(name string, how otlpmetricsv1.AggregationTemporality, n int64, of map[string]string) *otlpmetricsv1.Metric {
	return &otlpmetricsv1.Metric{Name: names.Prefix + "." + name, Data: &otlpmetricsv1.Metric_Sum{Sum: &otlpmetricsv1.Sum{
		AggregationTemporality: how,
		DataPoints: []*otlpmetricsv1.NumberDataPoint{{
			Attributes: attributes(of), Value: &otlpmetricsv1.NumberDataPoint_AsInt{AsInt: n},
		}},
	}}}
}

func timed(bounds []float64, buckets []uint64, of map[string]string) *otlpmetricsv1.Metric {
	var count uint64
	for _, n := range buckets {
		count += n
	}
	return &otlpmetricsv1.Metric{Name: names.Prefix + "." + names.Latency, Data: &otlpmetricsv1.Metric_Histogram{Histogram: &otlpmetricsv1.Histogram{
		AggregationTemporality: delta,
		DataPoints: []*otlpmetricsv1.HistogramDataPoint{{
			Attributes: attributes(of), Count: count, Sum: new(float64(100)), BucketCounts: buckets, ExplicitBounds: bounds,
		}},
	}}}
}

// text is what Prometheus is shown.
func text(t *testing.T, s *Sums) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, f := range families {
		if f.GetName() == "gatehouse_request_last_timestamp_seconds" {
			for _, m := range f.GetMetric() {
				if age := time.Since(time.UnixMilli(int64(1000 * m.GetGauge().GetValue()))); age < 0 || age > time.Minute {
					t.Errorf("the last request was %s ago", age)
				}
			}
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TestSums protects the names: those of the Gateway API, with the matches of a rule and
// the codes of a class added up.
func TestSums(t *testing.T) {
	s := &Sums{Bounds: DefaultBounds}
	edge := object.Name{Namespace: "infra", Name: "edge"}
	s.Take(edge, report(
		counted(delta, 3, map[string]string{names.Route: "HTTPRoute/shop/web/0/0", names.Backend: "shop/web:80#1a2b", names.Code: "200", names.Flags: "-", names.Listener: "tls-443@0.0.0.0", names.Attempts: "1"}),
		counted(delta, 4, map[string]string{names.Route: "HTTPRoute/shop/web/0/1", names.Backend: "shop/web:80#3c4d", names.Code: "204", names.Flags: "-", names.Listener: "tls-443@0.0.0.0", names.Attempts: "3"}),
		counted(delta, 5, map[string]string{names.Route: "GRPCRoute/shop/api/1/0/orders", names.Backend: "-", names.Code: "0", names.Flags: "DC"}),
		counted(delta, 6, map[string]string{names.Route: "-", names.Backend: "-", names.Code: "404", names.Flags: "NR", names.Listener: "no port", names.Attempts: "-"}),
		counted(delta, 2, map[string]string{names.Route: "HTTPRoute/shop/web/0/0", names.Backend: "shop/web:80#1a2b", names.Code: "503", names.Flags: "URX,UF", names.Listener: "tls-443@0.0.0.0", names.Attempts: "2"}),
		summed(names.Received, delta, 1000, map[string]string{names.Route: "HTTPRoute/shop/web/0/0"}),
		summed(names.Sent, delta, 2000, map[string]string{names.Route: "HTTPRoute/shop/web/0/1"}),
		// What is not since the last report would count again and again.
		counted(otlpmetricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, 7, map[string]string{names.Route: "HTTPRoute/shop/web/0/0", names.Code: "200"}),
		counted(delta, -1, map[string]string{names.Route: "HTTPRoute/shop/web/0/0", names.Code: "200"}),
		timed([]float64{5, 25}, []uint64{1, 2, 3}, map[string]string{names.Route: "HTTPRoute/shop/web/0/0"}),
		timed([]float64{5, 25}, []uint64{1, 0, 0}, map[string]string{names.Route: "HTTPRoute/shop/web/0/1"}),
		timed([]float64{5, 25}, []uint64{1}, map[string]string{names.Route: "HTTPRoute/shop/web/0/1"}),
	))
	s.Take(object.Name{Namespace: "infra", Name: "gone"}, report(counted(delta, 1, map[string]string{names.Code: "200"})))
	s.Forget(object.Name{Namespace: "infra", Name: "gone"})
	if got, want := text(t, s), `# HELP gatehouse_figures_left_out_total Requests that are counted under the route kind other only, since the Gateway or the namespace has too many series.
# TYPE gatehouse_figures_left_out_total counter
gatehouse_figures_left_out_total{gateway="infra/edge"} 0
# HELP gatehouse_request_bytes_total Bytes of requests' bodies. Counted where parameters have metrics.bytes.
# TYPE gatehouse_request_bytes_total counter
gatehouse_request_bytes_total{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop"} 1000
# HELP gatehouse_request_duration_seconds Time from the first byte of a request to the last one of its answer, over all proxies of a Gateway.
# TYPE gatehouse_request_duration_seconds histogram
gatehouse_request_duration_seconds_bucket{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop",le="0.005"} 2
gatehouse_request_duration_seconds_bucket{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop",le="0.025"} 4
gatehouse_request_duration_seconds_bucket{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop",le="+Inf"} 7
gatehouse_request_duration_seconds_sum{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop"} 0.2
gatehouse_request_duration_seconds_count{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop"} 7
# HELP gatehouse_requests_total Requests that the proxies of a Gateway have answered, by the listener's port, route, rule, backend, class of the code, and what went wrong.
# TYPE gatehouse_requests_total counter
gatehouse_requests_total{backend="",code_class="4xx",error_type="no_route",gateway="infra/edge",route="",route_kind="",route_namespace="",rule="",server_port=""} 6
gatehouse_requests_total{backend="",code_class="none",error_type="client",gateway="infra/edge",route="api",route_kind="GRPCRoute",route_namespace="shop",rule="orders",server_port=""} 5
gatehouse_requests_total{backend="shop/web:80",code_class="2xx",error_type="",gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop",rule="0",server_port="443"} 7
gatehouse_requests_total{backend="shop/web:80",code_class="5xx",error_type="connection",gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop",rule="0",server_port="443"} 2
# HELP gatehouse_response_bytes_total Bytes of answers' bodies. Counted where parameters have metrics.bytes.
# TYPE gatehouse_response_bytes_total counter
gatehouse_response_bytes_total{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop"} 2000
# HELP gatehouse_retries_total Attempts at backends beyond the first one of each request. A route has the series once there was one.
# TYPE gatehouse_retries_total counter
gatehouse_retries_total{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop"} 10
`; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestBound protects memory: what is beyond the bound is counted as one, of a namespace that has too many, or
// else of the Gateway.
func TestBound(t *testing.T) {
	t.Parallel()
	now := time.Now()
	g := newGateway(Bounds{Gateway: 100, Namespace: 20})
	take := func(namespace string, n int, at time.Time) {
		for i := range n {
			of := route{"HTTPRoute", namespace, fmt.Sprint(i)}
			g.addRequests(requests{route: of, class: "2xx"}, 1, at)
			g.totals(of, at).retries++
		}
	}
	other := func(namespace string) uint64 {
		c := g.requests[requests{route: route{kind: Other, namespace: namespace}, class: "2xx"}]
		if c == nil {
			return 0
		}
		return c.n
	}
	g.tidied = now
	take("greedy", 50, now)
	if n := other("greedy"); n != 30 || g.leftOut != 30 {
		t.Errorf("%d requests of a namespace beyond its bound, %d left out", n, g.leftOut)
	}
	if g.routes[route{kind: Other, namespace: "greedy"}].retries != 30 {
		t.Errorf("its routes: %+v", g.routes)
	}
	for i := range 10 {
		take(fmt.Sprint("modest-", i), 10, now)
	}
	if n := other(""); n == 0 || n+30 != g.leftOut || len(g.requests) > 102 || len(g.routes) > 102 {
		t.Errorf("%d requests beyond the Gateway's bound, %d left out, %d series of requests and %d routes", n, g.leftOut, len(g.requests), len(g.routes))
	}
	// What nothing comes for any more makes room.
	later := now.Add(idle - time.Minute)
	g.addRequests(requests{route: route{kind: Other}, class: "2xx"}, 1, later)
	before := len(g.requests)
	if g.tidy(later); len(g.requests) != before {
		t.Errorf("%d series of %d before they are idle", len(g.requests), before)
	}
	if g.tidy(later.Add(idle / 2)); len(g.requests) != 1 || len(g.routes) != 0 {
		t.Errorf("%d series, of which one has had a request lately", len(g.requests))
	}
	left := g.leftOut
	if take("greedy", 20, later); g.leftOut != left {
		t.Errorf("%d left out where there is room again", g.leftOut-left)
	}
}

// TestErrorType protects that flags of one cause have one name, whatever stands beside them.
func TestErrorType(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"": "", "-": "", "NR": "no_route", "UF,URX": "connection", "URX,UF": "connection", "URX": "retries", "UT": "timeout", "DC": "client",
		"UAEX": "denied", "RL": "rate_limited", "UH": "no_endpoint", "UO": "overload", "UC": "reset", "ZZ": Other,
	} {
		if got := errorType(flags); got != want {
			t.Errorf("%s is %q, not %q", flags, got, want)
		}
	}
}

// BenchmarkScrape is what a scrape of 5,000 routes costs, each with answers of one class.
func BenchmarkScrape(b *testing.B) {
	s := &Sums{Bounds: DefaultBounds}
	metrics := make([]*otlpmetricsv1.Metric, 0, 10_000)
	for i := range 5000 {
		of := map[string]string{names.Route: fmt.Sprintf("HTTPRoute/shop/web-%d/0/0", i), names.Backend: "shop/web:80#1a2b", names.Code: "200", names.Flags: "-"}
		metrics = append(metrics, counted(delta, 1, of), timed([]float64{5, 25, 100, 500, 2500}, []uint64{1, 1, 1, 1, 1, 1}, of))
	}
	s.Take(object.Name{Namespace: "infra", Name: "edge"}, report(metrics...))
	registry := prometheus.NewRegistry()
	registry.MustRegister(s)
	page := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	series := 0
	for b.Loop() {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		series = strings.Count(w.Body.String(), "\ngatehouse_re")
	}
	b.ReportMetric(float64(series)/5000, "series/route")
}
