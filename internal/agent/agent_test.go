package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/port"
)

// No clients are sent to a proxy before its first configuration is in force, and
// whoever asks is told what it waits for.
func TestReady(t *testing.T) {
	c := newController(t)
	c.stop()
	p := startPod(t, c, nil)
	until(t, "told that the control plane is away", func() bool {
		code, text := p.get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "no configuration yet: dial tcp")
	})
	c.start()
	until(t, "connected", func() bool { return p.relay.state().connected })
	if code, text := p.get("/readyz"); code != http.StatusServiceUnavailable || text != "no configuration yet\n" {
		t.Errorf("connected: %d %s", code, text)
	}
	if code, _ := p.get("/healthz"); code != http.StatusOK {
		t.Errorf("health: %d", code)
	}
	c.apply(listener(t, p.address))
	p.untilReady()
	if err := p.serves(); err != nil {
		t.Error(err)
	}
	_, metrics := p.get("/metrics")
	for _, want := range []string{
		`gatehouse_proxy_ready{gateway="default/edge"} 1`, `gatehouse_proxy_draining{gateway="default/edge"} 0`,
		`gatehouse_proxy_envoy_restarts_total{gateway="default/edge"} 0`,
		`gatehouse_proxy_controller_connections_total{gateway="default/edge",result="ok"} 1`,
		"go_goroutines", `envoy_server_live{gateway="default/edge"} 1`,
		`envoy_http_downstream_rq_total{gateway="default/edge",envoy_http_conn_manager_prefix="edge"} 1`,
		// What is new since the last time that somebody asked is in histograms too.
		`envoy_http_downstream_rq_time_count{gateway="default/edge",envoy_http_conn_manager_prefix="edge"} 1`,
	} {
		if !strings.Contains(metrics, want+"\n") && !strings.Contains(metrics, want+" ") {
			t.Errorf("no %q in the metrics", want)
		}
	}
	if regexp.MustCompile(`connected_since_seconds\S* 0\n`).MatchString(metrics) {
		t.Error("the metrics say that it is not connected")
	}
	if code, _ := p.get("/stats"); code != http.StatusNotFound {
		t.Errorf("Envoy's admin interface can be reached: %d", code)
	}
}

// A configuration without a listener is one too.
func TestReadyWithNothingToServe(t *testing.T) {
	c := newController(t)
	p := startPod(t, c, nil)
	c.apply()
	p.untilReady()
}

// While the control plane is away, clients are served. Another process of it is
// found, and sends nothing that the proxy has.
func TestControllerAway(t *testing.T) {
	c := newController(t)
	p := startPod(t, c, nil)
	edge := listener(t, p.address)
	c.apply(edge)
	p.untilReady()
	if c.sent() == 0 {
		t.Error("the first configuration was not counted")
	}
	c.stop()
	until(t, "cut off", func() bool { return !p.relay.state().connected })
	if err := p.serves(); err != nil || !p.isReady() {
		t.Errorf("with the control plane away: ready %t, %v", p.isReady(), err)
	}
	until(t, "told twice", func() bool { return p.relay.state().failed >= 2 })
	c.start()
	c.apply(edge)
	until(t, "synchronised", func() bool {
		g, ok := c.server.Gateway(gateway)
		return ok && g.State.Synced
	})
	if n := c.sent(); n != 0 {
		t.Errorf("sent %d resources that the proxy has", n)
	}
	next := port.AddressOfTest(t)
	p.address = next
	c.apply(listener(t, next))
	until(t, "changed", func() bool { return p.serves() == nil })
	if !p.log.Has("the control plane can't be reached") {
		t.Error("the log says nothing of the control plane's absence")
	}
}

func TestEnvoyKilled(t *testing.T) {
	c := newController(t)
	p := startPod(t, c, nil)
	c.apply(listener(t, p.address))
	p.untilReady()
	pid := p.supervisor.Snapshot().PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "seen to be gone", func() bool { return !p.isReady() || p.supervisor.Snapshot().PID != pid })
	p.untilReady()
	if err := p.serves(); err != nil {
		t.Error(err)
	}
	if _, metrics := p.get("/metrics"); !strings.Contains(metrics, `gatehouse_proxy_envoy_restarts_total{gateway="default/edge"} 1`+"\n") {
		t.Error("the restart is not counted")
	}
}

// The first signal makes it unready at once while it serves on; the second one
// ends it, whoever is there.
func TestHurry(t *testing.T) {
	c := newController(t)
	p := startPod(t, c, func(cfg *Config) { cfg.DrainDelay = time.Hour })
	c.apply(listener(t, p.address))
	p.untilReady()
	conn, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p.cancel()
	until(t, "unready", func() bool { return !p.isReady() })
	if code, text := p.get("/readyz"); code != http.StatusServiceUnavailable || text != "draining\n" {
		t.Errorf("%d %s", code, text)
	}
	if err := p.serves(); err != nil {
		t.Errorf("while it drains: %v", err)
	}
	p.Hurry()
	p.stop()
}

// A pod that nobody was sent to ends at once.
func TestNeverReady(t *testing.T) {
	c := newController(t)
	p := startPod(t, c, func(cfg *Config) { cfg.DrainDelay = time.Hour })
	until(t, "running", func() bool { return p.supervisor.Snapshot().PID != 0 })
	p.stop()
}

func TestSetUpErrors(t *testing.T) {
	c := newController(t)
	p := startPod(t, c, nil)
	until(t, "running", func() bool { return p.supervisor.Snapshot().PID != 0 })
	bad := p.cfg
	bad.Additions = []byte("admin: {}")
	bad.StateDir = "/proc/none"
	if err := runBriefly(t, bad); err == nil || !strings.Contains(err.Error(), "Gateway default/edge") {
		t.Errorf("a directory that can't be: %v", err)
	}
	bad.StateDir = t.TempDir()
	if err := runBriefly(t, bad); err == nil || !strings.Contains(err.Error(), "the field admin is Gatehouse's") {
		t.Errorf("additions that can't be: %v", err)
	}
}

func runBriefly(t *testing.T, c Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.Health = l
	c.Dial = func(context.Context) (net.Conn, error) { return nil, errors.New("not in this test") }
	return New(c).Run(ctx)
}
