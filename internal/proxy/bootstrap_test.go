package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func testBootstrap(t *testing.T) []byte {
	t.Helper()
	dir := shortDir(t)
	b, err := Bootstrap(BootstrapOptions{
		Gateway:     edge,
		XDSSocket:   filepath.Join(dir, "xds.sock"),
		AdminSocket: filepath.Join(dir, "admin.sock"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// validate asks the real Envoy, with unknown fields and deprecated ones seen.
func validate(t *testing.T, bootstrap []byte) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(path, bootstrap, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(envoy.Path, "--mode", "validate", "--config-path", path,
		"--disable-hot-restart", "--log-format", logFormat).CombinedOutput()
	return string(out), err
}

// startEnvoy runs an Envoy with a bootstrap until the test ends.
func startEnvoy(t *testing.T, bootstrap map[string]any) {
	t.Helper()
	raw, err := json.Marshal(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(envoy.Path, "--config-path", path, "--disable-hot-restart", "--concurrency", "1", "--log-level", "error")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("envoy: %s", &log)
		}
	})
}

func TestBootstrapIsValid(t *testing.T) {
	out, err := validate(t, testBootstrap(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if l := parseLine(line); l.Level > 0 || l.Time.IsZero() && !strings.HasSuffix(l.Text, "OK") {
			t.Errorf("Envoy says: %s", line)
		}
	}
}

// A regex beyond Envoy's own limit must be ours to accept.
func TestBootstrapAllowsLargeRegex(t *testing.T) {
	var b map[string]any
	if err := json.Unmarshal(testBootstrap(t), &b); err != nil {
		t.Fatal(err)
	}
	var listener any
	regex := strings.Repeat("[a-z]{1,9}x", 50)
	if err := json.Unmarshal([]byte(`{"name": "l", "address": {"pipe": {"path": "/none"}}, "filter_chains": [{"filters": [{"name": "h", "typed_config":
		{"@type": "`+typeHCM+`", "stat_prefix": "h",
		 "http_filters": [{"name": "r", "typed_config": {"@type": "`+typeRouter+`"}}],
		 "route_config": {"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [
		   {"match": {"safe_regex": {"regex": "`+regex+`"}}, "direct_response": {"status": 200}}]}]}}}]}]}`), &listener); err != nil {
		t.Fatal(err)
	}
	b["static_resources"].(map[string]any)["listeners"] = []any{listener}
	check := func() (string, error) {
		t.Helper()
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return validate(t, raw)
	}
	if out, err := check(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	delete(b, "layered_runtime")
	if out, err := check(); err == nil || !strings.Contains(out, "program size") {
		t.Errorf("the runtime setting makes no difference (%v): it can go", err)
	}
}

func TestConnectionLimit(t *testing.T) {
	for files, want := range map[uint64]uint64{0: 1, 1024: 512, 20_000: 10_000, 1 << 20: 50_000, math.MaxUint64: 50_000} {
		if got := connectionLimit(files); got != want {
			t.Errorf("%d open files: %d clients, want %d", files, got, want)
		}
	}
}

// Envoy turns away whom the limit leaves no room for.
func TestBootstrapLimitsConnections(t *testing.T) {
	var b map[string]any
	if err := json.Unmarshal(testBootstrap(t), &b); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(shortDir(t), "listener.sock")
	monitor := b["overload_manager"].(map[string]any)["resource_monitors"].([]any)[0].(map[string]any)
	monitor["typed_config"].(map[string]any)["max_active_downstream_connections"] = 1
	delete(b, "dynamic_resources") // nobody serves it
	b["admin"] = map[string]any{}
	b["static_resources"].(map[string]any)["listeners"] = []any{map[string]any{
		"name": "l", "address": map[string]any{"pipe": map[string]any{"path": socket}},
		"filter_chains": []any{map[string]any{"filters": []any{map[string]any{
			"name": "echo", "typed_config": map[string]any{"@type": "type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo"},
		}}}},
	}}
	startEnvoy(t, b)
	// echoed tells whether Envoy serves a connection.
	echoed := func(conn net.Conn) bool {
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := conn.Write([]byte("word")); err != nil {
			return false
		}
		_, err := io.ReadFull(conn, make([]byte, 4))
		return err == nil
	}
	client := func() (conn net.Conn, served bool) {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return nil, false
		}
		t.Cleanup(func() { conn.Close() })
		return conn, echoed(conn)
	}
	var first net.Conn
	waitFor(t, "the first client is served", func() (served bool) {
		first, served = client()
		return served
	})
	if _, served := client(); served {
		t.Error("a second client is served, over the limit of one")
	}
	if !echoed(first) {
		t.Error("the first client is cut off")
	}
}

func TestBootstrapIsDeterministic(t *testing.T) {
	o := BootstrapOptions{Gateway: ab, XDSSocket: "/x", AdminSocket: "/a"}
	one, err := Bootstrap(o)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Bootstrap(o)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, two) {
		t.Error("equal options, other bytes")
	}
}

func TestSocketPaths(t *testing.T) {
	long := "/" + strings.Repeat("d", 120)
	for path, want := range map[string]string{long: "choose a shorter directory", "relative": "not absolute"} {
		for _, o := range []BootstrapOptions{{XDSSocket: path, AdminSocket: "/a"}, {XDSSocket: "/x", AdminSocket: path}} {
			if _, err := Bootstrap(o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.20s: %v", path, err)
			}
		}
	}
	err := New(Config{Gateway: ab, Dir: long, Binary: envoy, XDSSocket: "/x"}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "Gateway a/b") || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("%v", err)
	}
}
