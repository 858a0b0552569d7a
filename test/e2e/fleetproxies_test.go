//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/figures"
	shown "github.com/gatehouse-dev/gatehouse/internal/fleet"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
	"github.com/gatehouse-dev/gatehouse/test/output"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// A shownFleet is three proxies of a Gateway at two controllers before a real API server, and
// who asks about them. The Envoys have networks of their own but for the first one.
type shownFleet struct {
	*controllers
	listeners  [2]int
	ports      [2]controllerPorts
	networks   [3]*ownNetwork
	pods       [3]*pod
	kubeconfig string
	flags      []string
}

func startShownFleet(t *testing.T) *shownFleet {
	t.Helper()
	f := &shownFleet{
		controllers: startControllers(t, "../../config/namespace.yaml", "../../config/install.yaml"),
		listeners:   [2]int{port.OfTest(t), port.OfTest(t)},
		kubeconfig:  filepath.Join(t.TempDir(), "kubeconfig"),
	}
	for i := range f.networks[1:] {
		if f.networks[i+1] = newNetwork(t); f.networks[i+1] == nil {
			t.Skip("three Envoys need networks of their own")
		}
	}
	writeKubeconfig(t, f.server, "", nil, f.kubeconfig)
	f.flags = []string{"--kubeconfig", f.kubeconfig}
	for i := range f.ports {
		f.ports[i] = freePorts(t)
		admin := net.JoinHostPort("127.0.0.1", strconv.Itoa(port.OfTest(t)))
		p := f.run(t, []string{fmt.Sprintf("POD_NAME=controller-%d", i)}, "--admin", admin, "--config", f.configure(t, fmt.Sprintf("config-%d.yaml", i), map[string]any{
			"ports": f.ports[i], "infrastructure": map[string]any{"image": "registry.example/gatehouse:test"},
		}))
		p.answers(t, f.ports[i].Health, "/readyz")
		f.flags = append(f.flags, "--controller", admin)
	}
	eventually(t, siteTimeout, func() error { return f.accepted(t.Context(), "gatehouse") })
	in := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.Namespace}},
		&gwv1.Gateway{ObjectMeta: in, Spec: gwv1.GatewaySpec{GatewayClassName: "gatehouse", Listeners: []gwv1.Listener{f.listener("one", 0)}}},
		&gwv1.HTTPRoute{ObjectMeta: in, Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: "web"}}},
			Rules: []gwv1.HTTPRouteRule{{Filters: []gwv1.HTTPRouteFilter{{
				Type:            gwv1.HTTPRouteFilterRequestRedirect,
				RequestRedirect: &gwv1.HTTPRequestRedirectFilter{Hostname: new(gwv1.PreciseHostname("there.example")), StatusCode: new(301)},
			}}}},
		}},
	} {
		if err := f.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	template := (&countingFleet{controllers: f.controllers, in: in}).deployment(t, "gatehouse-proxy").Spec.Template
	for i := range f.pods {
		of := *template.DeepCopy()
		of.Labels = maps.Clone(of.Labels)
		of.Labels[corev1.LabelTopologyZone] = "zone-a"
		of.Spec.NodeName = "node-1"
		flags := []string{}
		if n := f.networks[i]; n != nil {
			flags = append(flags, "--envoy="+n.wrapped(t, needTools(t).envoy))
		}
		made := f.makePod(t, of, fmt.Sprintf("web-%d", i+1))
		f.pods[i] = f.runPod(t, made, f.ports[i%2], flags...)
		t.Cleanup(func() { // an Envoy in a network of its own outlives an agent that is killed
			_ = f.pods[i].Process.Signal(syscall.SIGTERM)
			f.pods[i].ends(t)
		})
		eventually(t, siteTimeout, f.pods[i].ready)
		made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if err := f.Status().Update(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *shownFleet) listener(name string, i int) gwv1.Listener {
	return gwv1.Listener{Name: gwv1.SectionName(name), Port: gwv1.PortNumber(f.listeners[i]), Protocol: gwv1.HTTPProtocolType}
}

// show runs the command and returns what it prints.
func (f *shownFleet) show(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), needTools(t).gatehouse, slices.Concat([]string{"proxies"}, f.flags, args)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Fatalf("%v: %s", err, errs.String())
	}
	return out.String()
}

// are waits until the proxies have some states, and returns them.
func (f *shownFleet) are(t *testing.T, states ...shown.State) []shown.Proxy {
	t.Helper()
	var got struct{ Proxies []shown.Proxy }
	eventually(t, siteTimeout, func() error {
		got.Proxies = nil
		if err := json.Unmarshal([]byte(f.show(t, "-A", "-o", "json")), &got); err != nil {
			return permanent(err)
		}
		var are []shown.State
		for _, p := range got.Proxies {
			are = append(are, p.State)
		}
		if !slices.Equal(are, states) {
			return fmt.Errorf("the proxies are %v, not %v: %+v", are, states, got.Proxies)
		}
		return nil
	})
	return got.Proxies
}

// request is one for the root of a port of this machine.
func request(t *testing.T, port int) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port))+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// redirects reports whether a request is answered with a redirect for good.
func redirects(transport *http.Transport, r *http.Request) error {
	res, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusMovedPermanently {
		return fmt.Errorf("answered %s", res.Status)
	}
	return nil
}

// asks returns what asks a listener of a proxy once.
func (f *shownFleet) asks(t *testing.T, proxy, listener int) func() error {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	asked := request(t, f.listeners[listener])
	if n := f.networks[proxy]; n != nil {
		transport.DialContext = n.dial
	}
	return func() error { return redirects(transport, asked) }
}

// serves waits until a proxy answers on a listener.
func (f *shownFleet) serves(t *testing.T, proxy, listener int) {
	t.Helper()
	eventually(t, siteTimeout, f.asks(t, proxy, listener))
}

// configs looks at what the first proxy has, and at what the third one refuses.
func (f *shownFleet) configs(t *testing.T) {
	t.Helper()
	ask := func(args ...string) (config xds.LoadedConfig, code int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), needTools(t).gatehouse, slices.Concat([]string{"proxy-config"}, f.flags, []string{"-n", "shop", "-o", "json"}, args)...)
		text, err := cmd.Output()
		if failed, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || len(failed.Stderr) > 0) {
			t.Fatalf("%v: %s", err, failed.Stderr)
		}
		if err := json.Unmarshal(text, &config); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		return config, cmd.ProcessState.ExitCode()
	}
	config, code := ask("web-1", "routes")
	if code != 0 || len(config.Resources) == 0 || !slices.ContainsFunc(config.Resources, func(h xds.Loaded) bool {
		return h.State == xds.LoadedCurrent && h.Has == h.Wanted && bytes.Contains(h.Resource, []byte("there.example"))
	}) {
		t.Errorf("the routes of the first proxy, exit code %d: %+v", code, config)
	}
	if config, code := ask("web-1", "--diff"); code != 0 || len(config.Resources) != 0 {
		t.Errorf("the first proxy differs, exit code %d: %+v", code, config)
	}
	config, code = ask("web-3", "listeners", "--diff")
	if code != 1 || len(config.Resources) != 1 {
		t.Fatalf("the third proxy, exit code %d: %+v", code, config)
	}
	h := config.Resources[0]
	if h.State != xds.LoadedRefused || h.Has != "" || h.Resource != nil || !strings.Contains(h.Message, "Address already in use") ||
		!bytes.Contains(h.WantedResource, []byte(strconv.Itoa(f.listeners[1]))) {
		t.Errorf("the third proxy: %+v", h)
	}
	table := exec.CommandContext(t.Context(), needTools(t).gatehouse, slices.Concat([]string{"proxy-config"}, f.flags, []string{"-n", "shop", "web-3"})...)
	text, err := table.CombinedOutput()
	t.Logf("%v\n%s", err, text)
}

// TestTop protects that the intervals of top add up to what was sent to all proxies, whichever
// controller each reports to, with nothing of what was sent before.
func TestTop(t *testing.T) {
	t.Parallel()
	f := startShownFleet(t)
	send := func(n int) {
		t.Helper()
		for proxy := range f.pods {
			ask := f.asks(t, proxy, 0)
			for range n {
				if err := ask(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	send(10)
	eventually(t, siteTimeout, func() error { // what was sent before is counted before
		n := 0
		for _, ports := range f.ports {
			families, err := scraped(fmt.Sprintf("http://127.0.0.1:%d/metrics", ports.Metrics))
			if err != nil {
				return err
			}
			for _, m := range families["gatehouse_requests_total"].GetMetric() {
				n += int(m.GetCounter().GetValue())
			}
		}
		if n != 30 {
			return fmt.Errorf("%d requests are counted", n)
		}
		return nil
	})
	top := exec.Command(needTools(t).gatehouse, slices.Concat([]string{"top"}, f.flags, []string{"-n", "shop", "--interval", "5s", "-o", "json", "httproute/web"})...)
	var printed output.Buffer
	top.Stdout, top.Stderr = &printed, os.Stderr
	if err := top.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = top.Process.Kill(); _ = top.Wait() })
	read := func() (intervals int, requests uint64, last []figures.Traffic) {
		for line := range strings.Lines(printed.String()) {
			var interval struct{ Routes []figures.Traffic }
			if err := json.Unmarshal([]byte(line), &interval); err != nil {
				return intervals, requests, last // a line is being written
			}
			intervals++
			for _, r := range interval.Routes {
				requests, last = requests+r.Requests, interval.Routes
			}
		}
		return intervals, requests, last
	}
	settled := func(intervals int) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			if n, _, _ := read(); n < intervals {
				return fmt.Errorf("%d intervals were printed", n)
			}
			return nil
		})
	}
	settled(1) // from here on it counts
	send(100)
	eventually(t, siteTimeout, func() error {
		if _, n, _ := read(); n != 300 {
			return fmt.Errorf("%d requests are shown:\n%s", n, printed.String())
		}
		return nil
	})
	n, _, last := read()
	settled(n + 1)
	if _, n, _ := read(); n != 300 {
		t.Errorf("%d requests are shown:\n%s", n, printed.String())
	}
	want := figures.Of{Gateway: "shop/web", Kind: "HTTPRoute", Namespace: "shop", Name: "web"}
	if len(last) != 1 || last[0].Of != want || last[0].PerSecond <= 0 || last[0].Classes["3xx"] != last[0].Requests || last[0].P99 <= 0 {
		t.Errorf("the last interval with requests: %+v", last)
	}
	if err := top.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := top.Wait(); err != nil {
		t.Errorf("top ends with %v", err)
	}
	table := exec.Command(needTools(t).gatehouse, slices.Concat([]string{"top"}, f.flags, []string{"-A", "--gateway", "web", "--interval", "5s", "--once", "-o", "wide", "--sort", "p99"})...)
	var rows, errs output.Buffer
	table.Stdout, table.Stderr = &rows, &errs
	if err := table.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = table.Process.Kill() })
	ended := make(chan error, 1)
	go func() { ended <- table.Wait() }()
	for done := false; !done; {
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("top: %v: %s", err, errs.String())
			}
			done = true
		default:
			send(1)
		}
	}
	t.Logf("\n%s", rows.String())
	if !regexp.MustCompile(`(?m)^shop/web +HTTPRoute shop/web +[0-9.]+ .*100%`).MatchString(rows.String()) {
		t.Errorf("the table:\n%s%s", rows.String(), errs.String())
	}
}

// TestFleetProxies protects that each proxy has a row that is true, whichever controller it is
// connected to; that one which refuses a listener is shown so with the object and changes no other
// row; and that a watch prints what has changed.
func TestFleetProxies(t *testing.T) {
	t.Parallel()
	f := startShownFleet(t)
	all := f.are(t, shown.Current, shown.Current, shown.Current)
	for i, p := range all {
		if p.Gateway != "shop/web" || p.Pod != fmt.Sprintf("web-%d", i+1) || p.Replica != fmt.Sprintf("controller-%d", i%2) ||
			p.Node != "node-1" || p.Zone != "zone-a" || p.Ready == nil || !*p.Ready || p.Envoy == "" || p.CertificateEnds.IsZero() ||
			p.Connected.IsZero() || p.Wanted == "" || p.Wanted != p.Acknowledged || p.Wanted != all[0].Wanted {
			t.Errorf("proxy %d: %+v", i, p)
		}
	}
	watch := exec.Command(needTools(t).gatehouse, slices.Concat([]string{"proxies"}, f.flags, []string{"-A", "-w"})...)
	var rows output.Buffer
	watch.Stdout, watch.Stderr = &rows, os.Stderr
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watch.Process.Kill(); _ = watch.Wait() })
	printed := func(pattern string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			if !regexp.MustCompile(pattern).MatchString(rows.String()) {
				return fmt.Errorf("no row is %s:\n%s", pattern, rows.String())
			}
			return nil
		})
	}
	printed(`web-3 .*Current`)

	// The address of the second listener is taken where the third Envoy is.
	taken := f.networks[2].listen(t, net.JoinHostPort("0.0.0.0", strconv.Itoa(f.listeners[1])))
	gateway := &gwv1.Gateway{}
	if err := f.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, gateway); err != nil {
		t.Fatal(err)
	}
	gateway.Spec.Listeners = append(gateway.Spec.Listeners, f.listener("two", 1))
	if err := f.Update(t.Context(), gateway); err != nil {
		t.Fatal(err)
	}
	refusing := f.are(t, shown.Current, shown.Current, shown.Refused)
	if r := refusing[2]; r.Wanted == r.Acknowledged || !strings.Contains(r.Refused.Message, "Address already in use") ||
		len(r.Refused.Objects) != 1 || !strings.HasPrefix(r.Refused.Objects[0], "Gateway shop/web listener ") {
		t.Errorf("the third proxy: %+v %+v", r, r.Refused)
	}
	for _, p := range refusing[:2] {
		if p.Wanted != p.Acknowledged || p.Wanted == all[0].Wanted || p.Refused != nil {
			t.Errorf("another proxy: %+v", p)
		}
	}
	printed(`web-3 .*Refused +Gateway shop/web listener .*Address already in use`)
	f.serves(t, 0, 1)
	f.serves(t, 1, 1)
	f.serves(t, 2, 0)
	table, wide := f.show(t, "-n", "shop", "--gateway", "web"), f.show(t, "-A", "-o", "wide")
	t.Logf("\n%s\n%s", table, wide)
	for row := range strings.SplitSeq(table, "\n") {
		if before, _, _ := strings.Cut(row, "  Gateway shop"); len(before) > 120 {
			t.Errorf("%d columns: %s", len(before), row)
		}
	}

	f.configs(t)
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	f.are(t, shown.Current, shown.Current, shown.Current)
	f.serves(t, 2, 1)

	// One that is gone has a row as long as its pod is there.
	f.pods[1].signal(t)
	f.pods[1].ends(t)
	f.are(t, shown.Current, shown.Disconnected, shown.Current)
	printed(`web-2 .*Disconnected`)
	if err := watch.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}
