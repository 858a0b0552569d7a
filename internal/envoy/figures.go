package envoy

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	statslogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stats/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/figures/names"
)

// What is counted is bounded in each proxy too: beyond it, Envoy counts nothing that is new.
const (
	maxFigureCounters   = 50_000
	maxFigureHistograms = 20_000
)

// figuresLog counts requests by what Envoy knows of a route anyway. It is the same in every
// connection manager: Envoy adds up what has equal names. They don't share a scope: with a
// sharing_name, envoy 1.40 --mode validate crashes at its end.
var figuresLog = &statslogv3.Config{
	StatsScope: &typev3.Scope{
		Prefix: names.Prefix, EnableEviction: true,
		MaxCounters: wrapperspb.UInt32(maxFigureCounters), MaxHistograms: wrapperspb.UInt32(maxFigureHistograms),
	},
	Counters: []*statslogv3.Config_Counter{{
		Stat: &statslogv3.Config_Stat{Name: names.Requests, Tags: []*statslogv3.Config_Tag{
			{Name: names.Route, ValueFormat: "%ROUTE_NAME%"},
			{Name: names.Backend, ValueFormat: "%UPSTREAM_CLUSTER_RAW%"},
			{Name: names.Code, ValueFormat: "%RESPONSE_CODE%"},
			{Name: names.Reason, ValueFormat: "%RESPONSE_FLAGS%"},
		}},
		ValueFixed: wrapperspb.UInt64(1),
	}},
	Histograms: []*statslogv3.Config_Histogram{{
		Stat: &statslogv3.Config_Stat{Name: names.Latency, Tags: []*statslogv3.Config_Tag{
			{Name: names.Route, ValueFormat: "%ROUTE_NAME%"},
		}},
		Unit: statslogv3.Config_Histogram_Milliseconds, ValueFormat: "%DURATION%",
	}},
}

func figuresLogger() (*accesslogv3.AccessLog, error) {
	config, err := pack(figuresLog)
	if err != nil {
		return nil, err
	}
	return &accesslogv3.AccessLog{
		Name: "envoy.access_loggers.stats", ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: config},
	}, nil
}
