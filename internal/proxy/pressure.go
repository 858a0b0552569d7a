package proxy

import "slices"

// Envoy resets the connections beyond its limit. Before that it makes room: as connections
// become few, those without a request may last less and less long. Clients that ask for
// something then find a place. Whoever waits for an answer keeps his, however long that takes.

const (
	// From scalingPressure on timeouts are shorter, down to their minimum at
	// saturatedPressure: shares of the limit.
	scalingPressure   = 0.5
	saturatedPressure = 0.7

	// What is left of the timeouts then.
	pressedIdle      = "2s" // without a request
	pressedHandshake = "2s" // of TLS
)

const (
	connectionMonitor = "envoy.resource_monitors.global_downstream_max_connections"
	heapMonitor       = "envoy.resource_monitors.fixed_heap"

	// Another name than Envoy's own for such an action leaves that one to additions.
	reduceTimeouts = "gatehouse.reduce_timeouts"
)

// noHeap is more than any machine has.
const noHeap = 1 << 50

// underPressure is what Envoy does as the connections that it may have become few.
func underPressure(limit uint64) overloadManager {
	return overloadManager{
		RefreshInterval: "0.25s",
		Monitors: []resourceMonitor{
			{Name: connectionMonitor, Config: monitorConfig{
				Type: "type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
				Max:  limit,
			}},
			// Connections are counted as they come. But what the count triggers is looked
			// at only where Envoy also has a monitor to ask, whichever that is: of this one
			// nothing follows.
			{Name: heapMonitor, Config: monitorConfig{
				Type:    "type.googleapis.com/envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig",
				MaxHeap: noHeap,
			}},
		},
		Actions: []overloadAction{{
			Name:     reduceTimeouts,
			Triggers: []trigger{{Name: connectionMonitor, Scaled: scaled{From: scalingPressure, To: saturatedPressure}}},
			Config: scaleTimers{
				Type: "type.googleapis.com/envoy.config.overload.v3.ScaleTimersOverloadActionConfig",
				Factors: []timerFactor{
					{Timer: "HTTP_DOWNSTREAM_CONNECTION_IDLE", Min: pressedIdle},
					{Timer: "TRANSPORT_SOCKET_CONNECT", Min: pressedHandshake},
				},
			},
		}},
	}
}

// theirMonitors leaves out our resource monitors that additions to the bootstrap have too:
// Envoy refuses two of a name.
func theirMonitors(ours, add jsonObject) {
	manager, _ := ours["overload_manager"].(jsonObject)
	theirs, _ := add["overload_manager"].(jsonObject)
	added, _ := theirs["resource_monitors"].([]any)
	mine, _ := manager["resource_monitors"].([]any)
	manager["resource_monitors"] = slices.DeleteFunc(mine, func(m any) bool {
		return slices.ContainsFunc(added, func(a any) bool { return nameOf(a) != "" && nameOf(a) == nameOf(m) })
	})
}

// nameOf returns the name of an object of Envoy's configuration; empty if it has none.
func nameOf(v any) string {
	object, _ := v.(jsonObject)
	name, _ := object["name"].(string)
	return name
}
