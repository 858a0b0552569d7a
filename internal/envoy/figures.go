package envoy

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	statslogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stats/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/figures/names"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// What is counted is bounded in each proxy too: beyond it, Envoy counts nothing that is new.
const (
	maxFigureCounters   = 50_000
	maxFigureHistograms = 20_000
)

// figuresLogs counts requests by what Envoy knows of a route anyway. Envoy adds up what has equal names.
// Listeners don't share a scope: with a sharing_name, envoy 1.40 --mode validate crashes at its end.
func figuresLogs(l *ir.Listener) ([]*accesslogv3.AccessLog, error) {
	if l.Telemetry.Figures == ir.NoFigures {
		return nil, nil
	}
	route := &statslogv3.Config_Tag{Name: names.Route, ValueFormat: "%ROUTE_NAME%"}
	log := &statslogv3.Config{
		StatsScope: &typev3.Scope{
			Prefix: names.Prefix, EnableEviction: true,
			MaxCounters: wrapperspb.UInt32(maxFigureCounters), MaxHistograms: wrapperspb.UInt32(maxFigureHistograms),
		},
		Counters: []*statslogv3.Config_Counter{{
			Stat: &statslogv3.Config_Stat{Name: names.Requests, Tags: []*statslogv3.Config_Tag{
				{Name: names.Listener, ValueFormat: "%LISTENER_NAME%"},
				route,
				{Name: names.Backend, ValueFormat: "%UPSTREAM_CLUSTER_RAW%"},
				{Name: names.Code, ValueFormat: "%RESPONSE_CODE%"},
				{Name: names.Flags, ValueFormat: "%RESPONSE_FLAGS%"},
				{Name: names.Attempts, ValueFormat: "%UPSTREAM_REQUEST_ATTEMPT_COUNT%"},
			}},
			ValueFixed: wrapperspb.UInt64(1),
		}},
		Histograms: []*statslogv3.Config_Histogram{{
			Stat: &statslogv3.Config_Stat{Name: names.Latency, Tags: []*statslogv3.Config_Tag{route}},
			Unit: statslogv3.Config_Histogram_Milliseconds, ValueFormat: "%DURATION%",
		}},
	}
	if l.Telemetry.Figures == ir.WithBytes {
		for _, bytes := range []struct{ name, value string }{{names.Received, "%BYTES_RECEIVED%"}, {names.Sent, "%BYTES_SENT%"}} {
			log.Counters = append(log.Counters, &statslogv3.Config_Counter{
				Stat:        &statslogv3.Config_Stat{Name: bytes.name, Tags: []*statslogv3.Config_Tag{route}},
				ValueFormat: bytes.value,
			})
		}
	}
	config, err := pack(log)
	if err != nil {
		return nil, err
	}
	return []*accesslogv3.AccessLog{{
		Name: "envoy.access_loggers.stats", ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: config},
	}}, nil
}
