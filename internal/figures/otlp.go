package figures

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	otlpcollectorv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	otlpcommonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	otlpmetricsv1 "go.opentelemetry.io/proto/otlp/metrics/v1"
	otlpresourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"
)

// Exporter sends the sums to a collector by OTLP over HTTP. They are cumulative: what a request that fails had said, the next
// one says again.
type Exporter struct {
	Sums     *Sums
	Endpoint string        // such as http://collector:4318/v1/metrics
	Interval time.Duration // between two times that it sends
	Instance string        // what tells this process from others that count
	Log      *slog.Logger

	pause  time.Duration // before it tries again for the first time; a second if zero
	failed bool          // the last time
}

const (
	// maxPoints bounds a request: a collector takes 4 MB by default, and a point is some hundred bytes.
	maxPoints = 5000
	tries     = 3
	// lastWait is how long this process may wait at its end for the collector to take the last sums.
	lastWait = 2 * time.Second
	// maxReply is how much is read of what a collector answers, in bytes.
	maxReply = 64 << 10
)

// Run sends until ctx ends, and once more then.
func (e *Exporter) Run(ctx context.Context) {
	tick := time.NewTicker(e.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWait)
			defer cancel()
			e.send(last)
			return
		case <-tick.C:
		}
		within, cancel := context.WithTimeout(ctx, e.Interval)
		e.send(within)
		cancel()
	}
}

// send sends all sums, and tells of a failure when it begins and when it ends.
func (e *Exporter) send(ctx context.Context) {
	err := e.sendAll(ctx)
	switch {
	case err != nil && !e.failed:
		e.Log.Warn("figures can't be sent to the collector; they are sent again later", "endpoint", e.Endpoint, "error", err)
	case err == nil && e.failed:
		e.Log.Info("figures are sent to the collector again", "endpoint", e.Endpoint)
	}
	e.failed = err != nil
}

func (e *Exporter) sendAll(ctx context.Context) error {
	metrics, err := e.Sums.metrics(time.Now())
	if err != nil {
		return err
	}
	var refused []error // parts that others needn't wait for
	for part := range slices.Chunk(metrics, maxPoints) {
		again, err := e.sendPart(ctx, part)
		if again {
			return errors.Join(append(refused, err)...)
		}
		refused = append(refused, err)
	}
	return errors.Join(refused...)
}

// sendPart sends some figures, and says whether those that have failed may be sent again.
func (e *Exporter) sendPart(ctx context.Context, part []*otlpmetricsv1.Metric) (again bool, err error) {
	body, err := proto.Marshal(e.request(part))
	if err != nil {
		return false, err
	}
	pause := cmp.Or(e.pause, time.Second)
	for attempt := 1; ; attempt++ {
		if again, err = e.post(ctx, body); err == nil {
			return false, nil
		}
		if !again || attempt == tries || !waited(ctx, pause) {
			return again, err
		}
		pause *= 2
	}
}

// waited reports whether some time has passed before ctx has ended.
func waited(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// sender follows no redirect: it would lead figures to whom nobody has named, or nowhere.
var sender = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// post sends one request, and says whether one that has failed may be sent again.
func (e *Exporter) post(ctx context.Context, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Endpoint, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	res, err := sender.Do(req)
	if err != nil {
		return true, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err != nil {
		return true, err
	}
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, errors.New("it answers " + res.Status)
	default:
		return false, errors.New("it answers " + res.Status)
	}
	var reply otlpcollectorv1.ExportMetricsServiceResponse
	if err := proto.Unmarshal(text, &reply); err != nil {
		return false, fmt.Errorf("its answer can't be read: %w", err)
	}
	if n := reply.GetPartialSuccess().GetRejectedDataPoints(); n > 0 {
		return false, fmt.Errorf("it refuses %d of the figures: %s", n, reply.GetPartialSuccess().GetErrorMessage())
	}
	return false, nil
}

func (e *Exporter) request(metrics []*otlpmetricsv1.Metric) *otlpcollectorv1.ExportMetricsServiceRequest {
	return &otlpcollectorv1.ExportMetricsServiceRequest{ResourceMetrics: []*otlpmetricsv1.ResourceMetrics{{
		Resource:     &otlpresourcev1.Resource{Attributes: []*otlpcommonv1.KeyValue{attribute("service.name", "gatehouse"), attribute("service.instance.id", e.Instance)}},
		ScopeMetrics: []*otlpmetricsv1.ScopeMetrics{{Metrics: metrics}},
	}}}
}

func attribute(key, value string) *otlpcommonv1.KeyValue {
	return &otlpcommonv1.KeyValue{Key: key, Value: &otlpcommonv1.AnyValue{Value: &otlpcommonv1.AnyValue_StringValue{StringValue: value}}}
}

// metrics are what Prometheus gets, as OTLP has it: one point in each. Names are without the end that a collector appends when it
// shows them to Prometheus.
func (s *Sums) metrics(now time.Time) (out []*otlpmetricsv1.Metric, err error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(s); err != nil {
		return nil, err
	}
	families, err := registry.Gather()
	if err != nil {
		return nil, err
	}
	begin, at := uint64(s.Began.UnixNano()), uint64(now.UnixNano()) //nolint:gosec // times after 1970
	const cumulative = otlpmetricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	for _, family := range families {
		name := strings.TrimSuffix(family.GetName(), "_total")
		for _, m := range family.GetMetric() {
			one := &otlpmetricsv1.Metric{Name: name, Description: family.GetHelp()}
			number := func(v float64) []*otlpmetricsv1.NumberDataPoint {
				return []*otlpmetricsv1.NumberDataPoint{{
					Attributes: attributesOf(m.GetLabel()), StartTimeUnixNano: begin, TimeUnixNano: at,
					Value: &otlpmetricsv1.NumberDataPoint_AsInt{AsInt: int64(v)},
				}}
			}
			switch h, gauge := m.GetHistogram(), m.GetGauge(); {
			case gauge != nil:
				one.Name, one.Unit = strings.TrimSuffix(name, "_seconds"), "s"
				one.Data = &otlpmetricsv1.Metric_Gauge{Gauge: &otlpmetricsv1.Gauge{DataPoints: number(gauge.GetValue())}}
			case h != nil:
				one.Name, one.Unit = strings.TrimSuffix(name, "_seconds"), "s"
				one.Data = &otlpmetricsv1.Metric_Histogram{Histogram: &otlpmetricsv1.Histogram{
					AggregationTemporality: cumulative, DataPoints: []*otlpmetricsv1.HistogramDataPoint{point(h, m.GetLabel(), begin, at)},
				}}
			default:
				one.Data = &otlpmetricsv1.Metric_Sum{Sum: &otlpmetricsv1.Sum{
					AggregationTemporality: cumulative, IsMonotonic: true, DataPoints: number(m.GetCounter().GetValue()),
				}}
			}
			out = append(out, one)
		}
	}
	return out, nil
}

func point(h *dto.Histogram, labels []*dto.LabelPair, begin, at uint64) *otlpmetricsv1.HistogramDataPoint {
	out := &otlpmetricsv1.HistogramDataPoint{
		Attributes: attributesOf(labels), StartTimeUnixNano: begin, TimeUnixNano: at, Count: h.GetSampleCount(), Sum: new(h.GetSampleSum()),
	}
	var below uint64
	for _, b := range h.GetBucket() {
		out.ExplicitBounds = append(out.ExplicitBounds, b.GetUpperBound())
		out.BucketCounts = append(out.BucketCounts, b.GetCumulativeCount()-below)
		below = b.GetCumulativeCount()
	}
	out.BucketCounts = append(out.BucketCounts, h.GetSampleCount()-below)
	return out
}

// attributesOf leaves out labels that say nothing. OpenTelemetry has names for two of the others.
func attributesOf(labels []*dto.LabelPair) (out []*otlpcommonv1.KeyValue) {
	for _, l := range labels {
		key := l.GetName()
		switch key {
		case "server_port":
			key = "server.port"
		case "error_type":
			key = "error.type"
		}
		if l.GetValue() != "" {
			out = append(out, attribute(key, l.GetValue()))
		}
	}
	return out
}
