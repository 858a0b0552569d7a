package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// scaledEnvoy runs an Envoy with our overload manager, after a change to it, that may have
// ten connections, and answers HTTP on the socket that is returned.
func scaledEnvoy(t *testing.T, change func(manager *overloadManager)) (socket string) {
	t.Helper()
	manager := underPressure(10)
	change(&manager)
	socket = filepath.Join(shortDir(t), "listener.sock")
	startEnvoy(t, map[string]any{
		"admin":            map[string]any{},
		"overload_manager": manager,
		"static_resources": map[string]any{"listeners": []any{map[string]any{
			"name": "l", "address": map[string]any{"pipe": map[string]any{"path": socket}},
			"filter_chains": []any{map[string]any{"filters": []any{map[string]any{"name": "http", "typed_config": map[string]any{
				"@type": typeHCM, "stat_prefix": "http",
				"http_filters": []any{map[string]any{"name": "router", "typed_config": map[string]any{"@type": typeRouter}}},
				"route_config": map[string]any{"virtual_hosts": []any{map[string]any{
					"name": "all", "domains": []string{"*"}, "routes": []any{map[string]any{
						"match": map[string]any{"prefix": "/"}, "direct_response": map[string]any{"status": 200},
					}},
				}}},
			}}}}},
		}}},
	})
	waitFor(t, "Envoy listens", func() bool {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"); err != nil {
			return false
		}
		raw, err := io.ReadAll(conn)
		return err == nil && bytes.HasPrefix(raw, []byte("HTTP/1.1 200"))
	})
	return socket
}

// ended opens silent connections, and counts those that have ended after a time.
func ended(t *testing.T, socket string, connections int, within time.Duration) (n int) {
	t.Helper()
	deadline := time.Now().Add(within)
	var all []net.Conn
	for range connections {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		all = append(all, conn)
	}
	for _, conn := range all {
		_ = conn.SetReadDeadline(deadline)
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			n++
		}
	}
	return n
}

// Silent connections end within seconds where connections are few, and only there, though
// the idle timeout is Envoy's hour.
func TestUnderPressure(t *testing.T) {
	t.Parallel()
	const soon = 12 * time.Second
	t.Run("four of ten", func(t *testing.T) {
		t.Parallel()
		if n := ended(t, scaledEnvoy(t, func(*overloadManager) {}), 4, soon); n > 0 {
			t.Errorf("%d connections end without need", n)
		}
	})
	t.Run("nine of ten", func(t *testing.T) {
		t.Parallel()
		if n := ended(t, scaledEnvoy(t, func(*overloadManager) {}), 9, soon); n < 5 {
			t.Errorf("%d connections end, want five at least", n)
		}
	})
	t.Run("without a monitor to ask", func(t *testing.T) {
		t.Parallel()
		socket := scaledEnvoy(t, func(m *overloadManager) { m.Monitors = m.Monitors[:1] })
		if n := ended(t, socket, 9, soon); n > 0 {
			t.Errorf("%d connections end all the same: the monitor of the heap can go", n)
		}
	})
}

// Who adds an overload manager has what it says beside ours.
func TestUnderPressureWithAdditions(t *testing.T) {
	raw, err := merged(t, `
overloadManager:
  resource_monitors:
  - name: envoy.resource_monitors.fixed_heap
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig
      max_heap_size_bytes: 1000000000
  actions:
  - name: envoy.overload_actions.reduce_timeouts
    triggers: [{name: envoy.resource_monitors.fixed_heap, scaled: {scaling_threshold: 0.8, saturation_threshold: 0.9}}]
    typed_config:
      "@type": type.googleapis.com/envoy.config.overload.v3.ScaleTimersOverloadActionConfig
      timer_scale_factors: [{timer: HTTP_DOWNSTREAM_STREAM_IDLE, min_timeout: 30s}]
  - name: envoy.overload_actions.stop_accepting_requests
    triggers: [{name: envoy.resource_monitors.fixed_heap, threshold: {value: 0.98}}]
`)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := validate(t, raw); err != nil {
		t.Errorf("Envoy refuses it: %v\n%s", err, out)
	}
	var b struct {
		Manager struct {
			Monitors []struct {
				Name   string
				Config struct {
					Heap float64 `json:"max_heap_size_bytes"`
				} `json:"typed_config"`
			} `json:"resource_monitors"`
			Actions []any
		} `json:"overload_manager"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		t.Fatal(err)
	}
	if m := b.Manager.Monitors; len(m) != 2 || m[0].Name != connectionMonitor || m[1].Config.Heap != 1e9 || len(b.Manager.Actions) != 3 {
		t.Errorf("merged: %s", raw)
	}
}
