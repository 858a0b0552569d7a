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

func tags(of map[string]string) (out []*otlpcommonv1.KeyValue) {
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
	return &otlpmetricsv1.Metric{Name: names.Prefix + "." + names.Requests, Data: &otlpmetricsv1.Metric_Sum{Sum: &otlpmetricsv1.Sum{
		AggregationTemporality: how,
		DataPoints: []*otlpmetricsv1.NumberDataPoint{{
			Attributes: tags(of), Value: &otlpmetricsv1.NumberDataPoint_AsInt{AsInt: n},
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
			Attributes: tags(of), Count: count, Sum: new(float64(100)), BucketCounts: buckets, ExplicitBounds: bounds,
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
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TestSums protects the names: those of the Gateway API, with the matches of a rule and
// the codes of a class added up.
func TestSums(t *testing.T) {
	s := &Sums{}
	edge := object.Name{Namespace: "infra", Name: "edge"}
	s.Take(edge, report(
		counted(delta, 3, map[string]string{names.Route: "HTTPRoute/shop/web/0/0", names.Backend: "shop/web:80#1a2b", names.Code: "200", names.Reason: "-"}),
		counted(delta, 4, map[string]string{names.Route: "HTTPRoute/shop/web/0/1", names.Backend: "shop/web:80#3c4d", names.Code: "204", names.Reason: "-"}),
		counted(delta, 5, map[string]string{names.Route: "GRPCRoute/shop/api/1/0/orders", names.Backend: "-", names.Code: "0", names.Reason: "DC"}),
		counted(delta, 6, map[string]string{names.Route: "-", names.Backend: "-", names.Code: "404", names.Reason: "NR"}),
		// What is not since the last report would count again and again.
		counted(otlpmetricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, 7, map[string]string{names.Route: "HTTPRoute/shop/web/0/0", names.Code: "200"}),
		counted(delta, -1, map[string]string{names.Route: "HTTPRoute/shop/web/0/0", names.Code: "200"}),
		timed([]float64{5, 25}, []uint64{1, 2, 3}, map[string]string{names.Route: "HTTPRoute/shop/web/0/0"}),
		timed([]float64{5, 25}, []uint64{1, 0, 0}, map[string]string{names.Route: "HTTPRoute/shop/web/0/1"}),
		timed([]float64{5, 25}, []uint64{1}, map[string]string{names.Route: "HTTPRoute/shop/web/0/1"}),
	))
	s.Take(object.Name{Namespace: "infra", Name: "gone"}, report(counted(delta, 1, map[string]string{names.Code: "200"})))
	s.Forget(object.Name{Namespace: "infra", Name: "gone"})
	if got, want := text(t, s), `# HELP gatehouse_figures_left_out_total Requests that are counted under the route kind other only, since the Gateway has too many series.
# TYPE gatehouse_figures_left_out_total counter
gatehouse_figures_left_out_total{gateway="infra/edge"} 0
# HELP gatehouse_request_duration_seconds Time from the first byte of a request to the last one of its answer, over all proxies of a Gateway.
# TYPE gatehouse_request_duration_seconds histogram
gatehouse_request_duration_seconds_bucket{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop",le="0.005"} 2
gatehouse_request_duration_seconds_bucket{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop",le="0.025"} 4
gatehouse_request_duration_seconds_bucket{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop",le="+Inf"} 7
gatehouse_request_duration_seconds_sum{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop"} 0.2
gatehouse_request_duration_seconds_count{gateway="infra/edge",route="web",route_kind="HTTPRoute",route_namespace="shop"} 7
# HELP gatehouse_requests_total Requests that the proxies of a Gateway have answered, by route, rule, backend, class of the code, and Envoy's reason where it answered itself or something went wrong.
# TYPE gatehouse_requests_total counter
gatehouse_requests_total{backend="",code_class="4xx",gateway="infra/edge",reason="NR",route="",route_kind="",route_namespace="",rule=""} 6
gatehouse_requests_total{backend="",code_class="none",gateway="infra/edge",reason="DC",route="api",route_kind="GRPCRoute",route_namespace="shop",rule="orders"} 5
gatehouse_requests_total{backend="shop/web:80",code_class="2xx",gateway="infra/edge",reason="",route="web",route_kind="HTTPRoute",route_namespace="shop",rule="0"} 7
`; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestBound protects memory: what is beyond the bound is counted as one.
func TestBound(t *testing.T) {
	now := time.Now()
	g := &gateway{tidied: now, requests: map[requests]*count{}, latency: map[route]*histogram{}}
	for i := range maxSeries + 10 {
		g.addRequests(requests{route: route{"HTTPRoute", "shop", strings.Repeat("x", i%7) + string(rune('a'+i))}, class: "2xx"}, 1, now)
	}
	if len(g.requests) > maxSeries+1 || g.leftOut == 0 || g.requests[requests{route: route{kind: Other}, class: "2xx"}].n != g.leftOut {
		t.Errorf("%d series, %d left out", len(g.requests), g.leftOut)
	}
	// What nothing comes for any more makes room.
	later := now.Add(idle - time.Minute)
	g.addRequests(requests{route: route{kind: Other}, class: "2xx"}, 1, later)
	if g.tidy(later); len(g.requests) != maxSeries+1 {
		t.Errorf("%d series before they are idle", len(g.requests))
	}
	if g.tidy(later.Add(idle / 2)); len(g.requests) != 1 {
		t.Errorf("%d series, of which one has had a request lately", len(g.requests))
	}
}

// BenchmarkScrape is what a scrape of 5,000 routes costs, each with answers of one class.
func BenchmarkScrape(b *testing.B) {
	s := &Sums{}
	metrics := make([]*otlpmetricsv1.Metric, 0, 10_000)
	for i := range 5000 {
		of := map[string]string{names.Route: fmt.Sprintf("HTTPRoute/shop/web-%d/0/0", i), names.Backend: "shop/web:80#1a2b", names.Code: "200", names.Reason: "-"}
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
