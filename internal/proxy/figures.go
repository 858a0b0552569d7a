package proxy

import (
	"context"
	"math"
	"net/http"
	"regexp"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/figures/names"
)

const (
	// figuresInterval is how often Envoy reports its figures.
	figuresInterval = 5 * time.Second
	// figuresTimeout is for an Envoy that is busy; what it has counted waits.
	figuresTimeout = time.Second
)

// figuresBuckets are few: each is a series of every route.
var figuresBuckets = histogramBuckets{
	Match: stringMatcher{Prefix: names.Prefix + "."}, Buckets: []float64{5, 25, 100, 500, 2500},
}

// figuresSink reports figures over the connection for configuration, whose certificate tells
// for which Gateway they count. Each report has what was counted since the last one, and goes
// out once.
var figuresSink = statsSink{Name: "envoy.stat_sinks.open_telemetry", Config: map[string]any{
	"@type":                       "type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig",
	"grpc_service":                map[string]any{"envoy_grpc": map[string]any{"cluster_name": xdsCluster}, "timeout": "10s"},
	"report_counters_as_deltas":   true,
	"report_histograms_as_deltas": true,
	"custom_metric_conversions": map[string]any{"matcher_list": map[string]any{"matchers": []any{map[string]any{
		"predicate": map[string]any{"not_matcher": map[string]any{"single_predicate": map[string]any{
			"input": map[string]any{"name": "name", "typed_config": map[string]any{
				"@type": "type.googleapis.com/envoy.extensions.matching.common_inputs.stats.v3.StatFullNameMatchInput",
			}},
			"value_match": map[string]any{"prefix": names.Prefix + "."},
		}}},
		"on_match": map[string]any{"action": map[string]any{"name": "drop", "typed_config": map[string]any{
			"@type": "type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig.DropAction",
		}}},
	}}}},
}}

// report has Envoy report what it has counted, if somebody can take it.
func (s *Supervisor) report(ctx context.Context) {
	if s.cfg.Reachable != nil && !s.cfg.Reachable() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, figuresTimeout)
	defer cancel()
	// What is asked for is of no interest, so it is the shortest answer.
	if _, err := s.admin.do(ctx, http.MethodGet, "/stats?type=TextReadouts"); err != nil {
		s.log.Debug("envoy was not asked to report figures", "error", err)
	}
}

// flushTries is how often Envoy is asked whether its workers have answered.
const flushTries = 8

// Flush has Envoy's workers hand over what they have counted, and Envoy report its figures.
// Workers do so only when somebody asks, and the answer doesn't wait for them. So Envoy is
// asked for one statistic: how often it was asked while they were still at it. Once that
// stands still, they have answered.
func (s *Supervisor) Flush(ctx context.Context) error {
	const waiting = "server.dropped_stat_flushes"
	last := uint64(math.MaxUint64)
	for i := range flushTries {
		stats, err := s.Stats(ctx, "^"+regexp.QuoteMeta(waiting)+"$")
		if err != nil {
			return err
		}
		if stats[waiting] == last {
			break
		}
		last = stats[waiting]
		select {
		case <-time.After(time.Millisecond << i):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
