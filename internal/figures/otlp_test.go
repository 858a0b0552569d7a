package figures

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	otlpcollectorv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	otlpcommonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/figures/names"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// collector takes what is sent by OTLP over HTTP.
type collector struct {
	mu     sync.Mutex
	answer int // a status; 0 takes it
	asked  int
	points []string // of the last request
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.answer != 0 {
		w.WriteHeader(c.answer)
		return
	}
	body, err := io.ReadAll(r.Body)
	var got otlpcollectorv1.ExportMetricsServiceRequest
	if err != nil || proto.Unmarshal(body, &got) != nil || r.Header.Get("Content-Type") != "application/x-protobuf" || r.URL.Path != "/v1/metrics" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.points = nil
	for _, of := range got.GetResourceMetrics() {
		who := attributesText(of.GetResource().GetAttributes())
		for _, m := range of.GetScopeMetrics()[0].GetMetrics() {
			for _, p := range m.GetGauge().GetDataPoints() {
				age := time.Since(time.Unix(p.GetAsInt(), 0)) > time.Minute
				c.points = append(c.points, fmt.Sprintf("%s %s{%s} old: %v", who, m.GetName(), attributesText(p.GetAttributes()), age))
			}
			for _, p := range m.GetSum().GetDataPoints() {
				c.points = append(c.points, fmt.Sprintf("%s %s{%s} %d", who, m.GetName(), attributesText(p.GetAttributes()), p.GetAsInt()))
			}
			for _, p := range m.GetHistogram().GetDataPoints() {
				c.points = append(c.points, fmt.Sprintf("%s %s{%s} %v %v %d %g", who, m.GetName(), attributesText(p.GetAttributes()),
					p.GetExplicitBounds(), p.GetBucketCounts(), p.GetCount(), p.GetSum()))
			}
		}
	}
	slices.Sort(c.points)
	reply, _ := proto.Marshal(&otlpcollectorv1.ExportMetricsServiceResponse{})
	_, _ = w.Write(reply)
}

func attributesText(list []*otlpcommonv1.KeyValue) string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = a.GetKey() + "=" + a.GetValue().GetStringValue()
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// TestExporter protects a collector's figures: they are those of /metrics, a failure loses none and is told once.
func TestExporter(t *testing.T) {
	t.Parallel()
	var sums Sums
	sums.Began, sums.Bounds = time.Now(), DefaultBounds
	of := object.Name{Namespace: "infra", Name: "edge"}
	tags := map[string]string{
		names.Route: "HTTPRoute/shop/web/0/0", names.Code: "200", names.Flags: "-", names.Backend: "-", names.Listener: "http-80@0.0.0.0",
	}
	sums.Take(of, report(counted(delta, 7, tags), timed([]float64{5, 25}, []uint64{1, 2, 4}, tags)))

	var at collector
	server := httptest.NewServer(&at)
	defer server.Close()
	var said bytes.Buffer
	e := &Exporter{
		Sums: &sums, Endpoint: server.URL + "/v1/metrics", Instance: "a", Log: slog.New(slog.NewTextHandler(&said, nil)), pause: time.Millisecond,
	}
	at.answer = http.StatusServiceUnavailable
	e.send(t.Context())
	e.send(t.Context())
	if at.asked != 2*tries || strings.Count(said.String(), "level=WARN") != 1 || !strings.Contains(said.String(), "503") {
		t.Errorf("asked %d times, said:\n%s", at.asked, &said)
	}
	at.asked, at.answer = 0, http.StatusForbidden
	e.send(t.Context())
	if at.asked != 1 {
		t.Errorf("asked %d times after 403", at.asked)
	}

	sums.Take(of, report(counted(delta, 3, tags)))
	at.answer = 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.Interval = time.Hour
	e.Run(ctx) // sends once more at its end
	who := "service.instance.id=a,service.name=gatehouse gatehouse_"
	route := "gateway=infra/edge,route=web,route_kind=HTTPRoute,route_namespace=shop"
	want := []string{
		who + "figures_left_out{gateway=infra/edge} 0",
		who + "request_duration{" + route + "} [0.005 0.025] [1 2 4] 7 0.1",
		who + "request_last_timestamp{" + route + "} old: false",
		who + "requests{code_class=2xx," + route + ",rule=0,server.port=80} 10",
	}
	if diff := cmp.Diff(want, at.points); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(said.String(), "again\"") {
		t.Errorf("said:\n%s", &said)
	}
}
