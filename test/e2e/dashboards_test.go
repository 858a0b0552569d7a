//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/test/port"
)

// drawn is what Grafana puts in place of its variables, with a time for rates that suits a scrape each second.
var drawn = strings.NewReplacer("$__rate_interval", "20s", "$gateway", ".*", "$namespace", ".*", "$route", ".*")

// TestDashboardsDrawn protects panels that stay empty: a real Prometheus scrapes a real proxy's figures, each query of each
// dashboard is answered, and those of Gateways and routes with something.
func TestDashboardsDrawn(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not on PATH")
	}
	manifests := parametersFor("metrics: {bytes: true}")
	manifests["again.yaml"] = siteRules("again", "again.example", "- {retry: {attempts: 2, codes: [503]}, backendRefs: [{name: v1, port: 8080}]}")
	s := startSite(t, manifests, "--experimental")
	prometheus := startPrometheus(t, program, s.admin)

	empty := map[string]bool{ // a site has no certificates, and counts all
		"Certificates that end first": true, "Left out of the figures": true,
	}
	queries := dashboardQueries(t)
	if len(queries) < 40 {
		t.Fatalf("%d queries", len(queries))
	}
	u := &url.URL{Scheme: "http", Host: "again.example", Path: "/", RawQuery: "status=503"}
	eventually(t, siteTimeout, func() error {
		if o, err := (&clientCall{method: http.MethodPost, url: u, address: s.address, body: "0123456789"}).do(t.Context()); err != nil || o.status != http.StatusServiceUnavailable {
			t.Fatalf("%+v, %v", o, err)
		}
		for _, q := range queries {
			n, err := prometheus.ask(q.expr)
			if err != nil {
				t.Fatalf("%s, %s: %v", q.dashboard, q.panel, err)
			}
			if n == 0 && !empty[q.panel] && slices.Contains([]string{"gateway.json", "route.json"}, q.dashboard) {
				return fmt.Errorf("%s, %s shows nothing: %s", q.dashboard, q.panel, q.expr)
			}
		}
		return nil
	})
}

type dashboardQuery struct{ dashboard, panel, expr string }

// dashboardQueries are the queries of all dashboards of the chart.
func dashboardQueries(t *testing.T) (out []dashboardQuery) {
	t.Helper()
	files, err := filepath.Glob("../../charts/gatehouse/dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Panels []struct {
				Title   string                  `json:"title"`
				Targets []struct{ Expr string } `json:"targets"`
			} `json:"panels"`
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				out = append(out, dashboardQuery{filepath.Base(file), p.Title, drawn.Replace(target.Expr)})
			}
		}
	}
	return out
}

// prometheus is a running Prometheus.
type prometheus struct{ address string }

// startPrometheus has a Prometheus scrape a page each second.
func startPrometheus(t *testing.T, program, target string) prometheus {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: gatehouse, static_configs: [{targets: [%q]}]}]\n", target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := prometheus{fmt.Sprintf("127.0.0.1:%d", port.OfTest(t))}
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the context has ended by then
	eventually(t, siteTimeout, func() error {
		if n, err := p.ask("up == 1"); err != nil || n == 0 {
			return fmt.Errorf("Prometheus scrapes nothing: %d, %w", n, err)
		}
		return nil
	})
	return p
}

// ask returns how many series answer a query.
func (p prometheus) ask(query string) (int, error) {
	client := http.Client{Timeout: callTimeout}
	res, err := client.PostForm("http://"+p.address+"/api/v1/query", url.Values{"query": {query}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s, %w", query, answer.Error, err)
	}
	return len(answer.Data.Result), nil
}
