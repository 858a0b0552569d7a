//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/gatehouse-dev/gatehouse/test/port"
)

// scraped are the metrics of a page.
func scraped(url string) (map[string]*dto.MetricFamily, error) {
	client := http.Client{Timeout: callTimeout}
	res, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// counted checks that so many requests were counted in all, by class, rule and backend, and in
// the histogram; it asks twice, since being asked must change nothing.
func counted(url, route, rule, backend string, byClass map[string]int) error {
	for range 2 {
		families, err := scraped(url)
		if err != nil {
			return err
		}
		got := map[string]int{}
		for _, m := range families["gatehouse_requests_total"].GetMetric() {
			of := labels(m)
			if of["route_namespace"]+"/"+of["route"] != route || of["rule"] != rule || of["backend"] != backend && of["backend"] != "" {
				return fmt.Errorf("a series of another route: %v", of)
			}
			got[of["code_class"]] += int(m.GetCounter().GetValue())
		}
		sum, timed := 0, 0
		for class, n := range byClass {
			sum += n
			if got[class] != n {
				return fmt.Errorf("counted %v, and sent %v", got, byClass)
			}
		}
		for _, m := range families["gatehouse_request_duration_seconds"].GetMetric() {
			timed += int(m.GetHistogram().GetSampleCount())
		}
		if timed != sum || len(got) != len(byClass) {
			return fmt.Errorf("counted %v and timed %d, and sent %v", got, timed, byClass)
		}
	}
	return nil
}

func labels(m *dto.Metric) map[string]string {
	out := map[string]string{}
	for _, l := range m.GetLabel() {
		out[l.GetName()] = l.GetValue()
	}
	return out
}

// envoyOf is the process of a pod's Envoy.
func envoyOf(p *pod) (pid int, err error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.Process.Pid))
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		if children := strings.Fields(string(text)); len(children) > 0 {
			return strconv.Atoi(children[0])
		}
	}
	return 0, errors.New("there is no Envoy")
}

// TestFigures protects that each request counts once in what one scrape of the controller says
// of a fleet: one proxy is ended, one Envoy killed, one proxy added, and everybody scraped
// several times meanwhile. What is counted without a controller counts too.
func TestFigures(t *testing.T) {
	t.Parallel()
	f := startCountingFleet(t)
	template := f.deployment(t, "gatehouse-proxy").Spec.Template
	start := func(name string) countedProxy {
		var dial func(context.Context, string, string) (net.Conn, error)
		// Nobody counts for the limit, so all requests pass it.
		flags := []string{"--limits=" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port.OfTest(t))), "--drain-delay=0s"}
		if name != "web-1" {
			n := newNetwork(t)
			if n == nil {
				t.Skip("a fleet needs networks of its own")
			}
			dial, flags = n.dial, append(flags, "--envoy="+n.wrapped(t, needTools(t).envoy))
		}
		web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, DialContext: dial}, Timeout: callTimeout}
		t.Cleanup(web.CloseIdleConnections)
		p := countedProxy{f.startPod(t, template, name, f.ports, flags...), web}
		eventually(t, siteTimeout, p.ready)
		return p
	}
	fleet := []countedProxy{start("web-1"), start("web-2"), start("web-3")}
	sent := map[string]int{}
	send := func(n int) {
		got, _ := f.send(t, fleet, n)
		for code, n := range got {
			sent[strconv.Itoa(code/100)+"xx"] += n
		}
	}
	agree := func() error {
		for _, p := range fleet { // of each proxy too
			if code, text := p.get("/metrics"); code != http.StatusOK {
				return fmt.Errorf("%d %s", code, text)
			}
		}
		return counted(fmt.Sprintf("http://127.0.0.1:%d/metrics", f.ports.Metrics), "shop/web", "0", "shop/web:80", sent)
	}

	send(4000)
	fleet[0].web.CloseIdleConnections()
	fleet[0].signal(t) // what it has not said yet, it says before it ends
	fleet[0].ends(t)
	fleet = fleet[1:]
	eventually(t, siteTimeout, agree)

	pid, err := envoyOf(fleet[0].pod)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, siteTimeout, func() error {
		if now, err := envoyOf(fleet[0].pod); err != nil || now == pid {
			return fmt.Errorf("the killed Envoy has no successor: %w", err)
		}
		return fleet[0].ready()
	})
	fleet = append(fleet, start("web-4"))
	send(6000)
	eventually(t, siteTimeout, agree)
	t.Logf("sent and counted: %v", sent)

	// What is counted while no controller is there, the next one is told.
	f.controller.stop(t)
	for _, p := range fleet {
		eventually(t, siteTimeout, func() error {
			if _, text := p.get("/metrics"); !strings.Contains(text, `gatehouse_proxy_controller_connected_since_seconds{gateway="shop/web"} 0`+"\n") {
				return errors.New("there is a connection to a controller yet")
			}
			return nil
		})
	}
	clear(sent)
	send(1000)
	f.controller = f.run(t, nil, "--config", filepath.Join(f.dir, "config.yaml"))
	f.controller.answers(t, f.ports.Health, "/readyz")
	eventually(t, siteTimeout, func() error {
		return counted(fmt.Sprintf("http://127.0.0.1:%d/metrics", f.ports.Metrics), "shop/web", "0", "shop/web:80", sent)
	})
	for _, p := range fleet {
		p.web.CloseIdleConnections()
		p.signal(t)
		p.ends(t)
	}
	f.controller.stop(t)
}

// TestFigureKinds protects what a real Envoy counts beside requests: the listener's port, what went wrong,
// retries, and bytes where they are asked for; and that nothing is counted where that is asked for.
func TestFigureKinds(t *testing.T) {
	t.Parallel()
	manifests := parametersFor("metrics: {bytes: true}")
	manifests["again.yaml"] = siteRules("again", "again.example", "- {retry: {attempts: 2, codes: [503]}, backendRefs: [{name: v1, port: 8080}]}")
	s := startSite(t, manifests, "--experimental")
	s.answers(t, "http://nobody.example/", http.StatusNotFound)
	s.serves(t, "again.example", "v1")
	send := func(n int) {
		t.Helper()
		for range n {
			u := &url.URL{Scheme: "http", Host: "again.example", Path: "/", RawQuery: "status=503"}
			o, err := (&clientCall{method: http.MethodPost, url: u, address: s.address, body: "0123456789"}).do(t.Context())
			if err != nil || o.status != http.StatusServiceUnavailable {
				t.Fatalf("%+v, %v", o, err)
			}
		}
	}
	send(5)
	counts := func() (map[string]float64, error) {
		families, err := scraped("http://" + s.admin + "/metrics")
		if err != nil {
			return nil, err
		}
		out := map[string]float64{}
		for name, family := range families {
			for _, m := range family.GetMetric() {
				of := labels(m)
				if _, ok := of["route_kind"]; ok {
					out[strings.Join([]string{name, of["server_port"], of["route"], of["code_class"], of["error_type"]}, " ")] += m.GetCounter().GetValue()
				}
			}
		}
		return out, nil
	}
	eventually(t, siteTimeout, func() error {
		got, err := counts()
		if err != nil {
			return err
		}
		for series, want := range map[string]float64{
			"gatehouse_requests_total 80 again 5xx retries": 5,
			"gatehouse_retries_total  again  ":              10,
			"gatehouse_request_bytes_total  again  ":        50,
		} {
			if got[series] != want {
				return fmt.Errorf("%s is %v, not %v, among %v", series, got[series], want, got)
			}
		}
		if got["gatehouse_requests_total 80  4xx no_route"] < 1 || got["gatehouse_requests_total 80 again 2xx "] < 1 || got["gatehouse_response_bytes_total  again  "] < 100 {
			return fmt.Errorf("counted %v", got)
		}
		return nil
	})

	s.write(t, "parameters.yaml", siteParameters("metrics: {routes: false}"))
	eventually(t, siteTimeout, func() error {
		if dump := s.envoySays(t, "/config_dump?resource=dynamic_listeners&mask=active_state"); bytes.Contains(dump, []byte("gatehouse_figures")) {
			return errors.New("Envoy counts yet")
		}
		return nil
	})
	before, err := counts()
	if err != nil {
		t.Fatal(err)
	}
	send(5)
	s.envoySays(t, "/stats?type=TextReadouts") // which has it report
	s.envoySays(t, "/stats?type=TextReadouts")
	after, err := counts()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, after) {
		t.Errorf("counted without being asked to: %v, then %v", before, after)
	}
}
