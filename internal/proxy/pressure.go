package proxy

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// Envoy refuses the connections beyond its limit by itself, and knows of no way to make
// room before. So it is told how much of the limit is taken, through a file that its
// overload manager watches, and shortens what those who say nothing may take.

const (
	pressureFile = "pressure"
	// pressureInterval is how often the file is brought up to date. An attack that takes
	// all connections in less than a few of them is not met in time.
	pressureInterval = time.Second

	// From scalingPressure on timeouts are shorter, down to their minimum at
	// saturatedPressure. At closingPressure HTTP connections end with their requests.
	// Nothing here turns clients away: the file may be what a supervisor that has ended
	// wrote last.
	scalingPressure   = 0.5
	saturatedPressure = 0.8
	closingPressure   = 0.9

	// What is left under pressure of how long a connection may be without a request, and
	// of how long a handshake may take.
	pressedIdle      = "5s"
	pressedHandshake = "2s"
)

// downstream finds the connections of clients, and those whose first bytes are waited for.
const downstream = `^server\.total_connections$|^listener\..*\.downstream_pre_cx_active$`

// press tells Envoy how much of its limit of connections is taken.
func (s *Supervisor) press(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	stats, err := s.admin.gauges(ctx, downstream)
	if err != nil {
		return err
	}
	taken := uint64(0)
	for _, n := range stats {
		taken += n
	}
	return s.writePressure(taken)
}

// writePressure writes how much of the limit so many connections are, in hundredths, so that
// the file changes seldom.
func (s *Supervisor) writePressure(taken uint64) error {
	hundredths := min(taken*100/connectionLimit(openFiles()), 100)
	text := strconv.FormatFloat(float64(hundredths)/100, 'f', 2, 64)
	return writeFile(s.path(pressureFile), []byte(text), 0o600)
}

// gauges is stats of gauges only, which are few.
func (a *adminClient) gauges(ctx context.Context, filter string) (map[string]uint64, error) {
	return a.statsOf(ctx, "/stats?type=Gauges&filter="+url.QueryEscape(filter))
}

// underPressure is what Envoy does as the connections that it may have become few. Without a
// file it only refuses those beyond the limit.
func underPressure(file string, limit uint64) overloadManager {
	const monitor = "envoy.resource_monitors.injected_resource"
	m := overloadManager{Monitors: []resourceMonitor{{
		Name: "envoy.resource_monitors.global_downstream_max_connections",
		Config: monitorConfig{
			Type: "type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
			Max:  limit,
		},
	}}}
	if file == "" {
		return m
	}
	m.RefreshInterval = "0.25s"
	m.Monitors = append(m.Monitors, resourceMonitor{
		Name: monitor,
		Config: monitorConfig{
			Type:     "type.googleapis.com/envoy.extensions.resource_monitors.injected_resource.v3.InjectedResourceConfig",
			Filename: file,
		},
	})
	m.Actions = []overloadAction{
		{
			Name:     "envoy.overload_actions.reduce_timeouts",
			Triggers: []trigger{{Name: monitor, Scaled: &scaled{From: scalingPressure, To: saturatedPressure}}},
			Config: &scaleTimers{
				Type: "type.googleapis.com/envoy.config.overload.v3.ScaleTimersOverloadActionConfig",
				Factors: []timerFactor{
					{Timer: "HTTP_DOWNSTREAM_CONNECTION_IDLE", Min: pressedIdle},
					{Timer: "TRANSPORT_SOCKET_CONNECT", Min: pressedHandshake},
				},
			},
		},
		{Name: "envoy.overload_actions.disable_http_keepalive", Triggers: []trigger{{Name: monitor, Threshold: &threshold{Value: closingPressure}}}},
	}
	return m
}
