//go:build linux

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStatusCommand protects the command that people look with.
func TestStatusCommand(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{"bad.yaml": siteRoute("bad", "bad.example", "missing")})
	s.conditions(t, "HTTPRoute bad", "gw", "ResolvedRefs=False")
	for _, tc := range []struct {
		args []string
		has  []string
		fine bool // else the exit code tells of the bad route
	}{
		{[]string{"status"}, []string{"gw", "home", "bad", "BackendNotFound"}, false},
		{[]string{"status", "-o", "wide"}, []string{"gw", "home.example"}, false},
		{[]string{"status", "httproute/home"}, []string{"home"}, true},
		{[]string{"status", "gateway"}, []string{"gw"}, true},
		{[]string{"status", "-o", "yaml"}, []string{"kind: Gateway", "kind: HTTPRoute"}, false},
		{[]string{"policies"}, []string{"There are no policies"}, false},
		{[]string{"policies", "--effective", "httproute/" + siteNamespace + "/home"}, []string{"everybody passes"}, false},
		{[]string{"topology"}, []string{"home", "bad"}, false},
		{[]string{"topology", "--focus", "httproute/" + siteNamespace + "/nobody"}, nil, false},
	} {
		out, err := s.run(append(tc.args, "--state-dir", s.state)...)
		if (err == nil) != tc.fine {
			t.Errorf("%v: %v", tc.args, err)
		}
		for _, want := range tc.has {
			if !strings.Contains(out, want) {
				t.Errorf("%v lacks %q:\n%s", tc.args, want, out)
			}
		}
	}
	out, _ := s.run("status", "-o", "json", "--state-dir", s.state) // whose exit code tells of the bad route
	var report statusReport
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := (&step{Conditions: "Gateway gw", Are: []string{"Programmed=True"}}).checkStatus(&report, siteNamespace); err != nil {
		t.Error(err)
	}
	if out, err := s.run("status", "httproute/nobody", "--state-dir", s.state); err == nil {
		t.Errorf("status of a route that doesn't exist succeeds:\n%s", out)
	}
	if out, err := s.run("status", "--state-dir", t.TempDir()); err == nil {
		t.Errorf("status without a process succeeds:\n%s", out)
	}
}

// TestProvisionerModeWarns protects whoever tries the mode from taking it into production: its log begins with a warning.
func TestProvisionerModeWarns(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), needTools(t).gatehouse, "provisioner-mode", "--gateway-ctlr-name=gatehouse.dev/x", "--gatewayclass=c")
	cmd.Env = append(os.Environ(), "POD_NAMESPACE=default", "KUBECONFIG="+filepath.Join(t.TempDir(), "none"))
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("it runs without a cluster")
	}
	if first, _, _ := strings.Cut(string(out), "\n"); !strings.Contains(first, "not for production") {
		t.Errorf("its log begins with %s", first)
	}
}

// TestOfflineCommands protects the commands that need no running process.
func TestOfflineCommands(t *testing.T) {
	t.Parallel()
	p := needTools(t)
	dir := t.TempDir()
	good := filepath.Join(dir, "good.yaml")
	text := siteGateway(httpListener) + mustBackend(t, siteNamespace, "v1", "v1") + siteRoute("home", "home.example", "v1")
	if err := os.WriteFile(good, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte(strings.Replace(text, "port: 80,", "port: 99999,", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, output := range []string{"ir", "xds", "status", "yaml"} {
		first, err := p.run("translate", "-f", good, "-o", output)
		if err != nil {
			t.Errorf("translate -o %s: %v", output, err)
		}
		if second, err := p.run("translate", "-f", good, "-o", output); err != nil || second != first || first == "" {
			t.Errorf("translate -o %s twice differs or is empty (%v):\n%s", output, err, first)
		}
	}
	if out, err := p.run("status", "--once", good); err != nil || !strings.Contains(out, "home") {
		t.Errorf("status --once: %v\n%s", err, out)
	}
	if out, err := p.run("version"); err != nil || out == "" {
		t.Errorf("version: %q, %v", out, err)
	}
	if out, err := p.run("completion", "bash"); err != nil || !strings.Contains(out, "gatehouse") {
		t.Errorf("completion: %v", err)
	}
	for _, tc := range []struct {
		code int
		args []string
	}{
		{2, []string{"nonsense"}},
		{2, []string{"run"}},
		{2, []string{"run", "--nonsense", dir}},
		{2, []string{"run", "--bind", "not-an-address", dir}},
		{2, []string{"translate", "-f", good, "-o", "nonsense"}},
		{1, []string{"run", "--envoy", filepath.Join(dir, "no-envoy"), dir}},
		{1, []string{"status", "--once", bad}},
	} {
		out, err := p.run(tc.args...)
		if code := exitCode(err); code != tc.code {
			t.Errorf("gatehouse %s: exit code %d, want %d: %v\n%s", strings.Join(tc.args, " "), code, tc.code, err, out)
		}
	}
}

// TestAdmin protects what probes and Prometheus look at.
func TestAdmin(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{"bad.yaml": siteRoute("bad", "bad.example", "missing")})
	for path, has := range map[string]string{
		"/healthz":                       "",
		"/readyz":                        "",
		"/metrics":                       "gatehouse_",
		"/debug/tables":                  "",
		"/debug/xds":                     "gw",
		"/debug/fallback":                `"triggered": false`,
		"/debug/pprof/goroutine?debug=1": "goroutine",
	} {
		code, body, err := s.get(path)
		if err != nil || code != http.StatusOK || !strings.Contains(body, has) {
			t.Errorf("%s: %d, %v\n%s", path, code, err, clipped([]byte(body)))
		}
	}
	_, before, err := s.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	var many strings.Builder
	for i := range 50 {
		name := "many-" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		many.WriteString(siteRoute(name, name+".example", "v1"))
	}
	s.write(t, "many.yaml", many.String())
	s.serves(t, "many-a.example", "v1")
	_, after, err := s.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := series(before), series(after); b > a+20 {
		t.Errorf("50 routes took the series from %d to %d", a, b)
	}
}

// series counts the time series of a Prometheus exposition.
func series(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}
