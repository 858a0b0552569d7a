//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/bars"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// podServer is a server that comes and goes as a pod does.
type podServer struct {
	server      *http.Server
	port        int
	terminating bool
}

// startPodServer starts one whose answers take a moment, so that there are some under way at its end.
func startPodServer(t *testing.T) *podServer {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &podServer{port: l.Addr().(*net.TCPAddr).Port, server: &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Millisecond)
			_, _ = io.WriteString(w, "ok")
		}),
	}}
	go func() { _ = p.server.Serve(l) }() // until it is ended
	t.Cleanup(func() { _ = p.server.Close() })
	return p
}

// shutdown stops listening, and ends when what is under way has ended.
func (p *podServer) shutdown(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := p.server.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}

// podsManifest is a Service with an EndpointSlice for each pod, since they have ports of their own.
func podsManifest(pods []*podServer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Service\nmetadata: {name: pods, namespace: %s}\nspec: {ports: [{port: 8080}]}\n", siteNamespace)
	for i, p := range pods {
		fmt.Fprintf(&b, "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: pods-%d, namespace: %s, labels: {kubernetes.io/service-name: pods}}\n"+
			"addressType: IPv4\nports: [{port: %d}]\nendpoints: [{addresses: [127.0.0.1], conditions: {ready: %t, serving: true, terminating: %t}}]\n",
			i, siteNamespace, p.port, !p.terminating, p.terminating)
	}
	return b.String()
}

// paced is a load of a stated rate, whatever becomes of the requests.
type paced struct {
	stop   context.CancelFunc
	ended  sync.WaitGroup
	client *http.Client

	mu    sync.Mutex
	sent  int
	wrong map[string]int
}

func startPaced(t *testing.T, address, host string, perSecond int) *paced {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	s := &paced{stop: cancel, client: &http.Client{Transport: transport, Timeout: 10 * time.Second}, wrong: map[string]int{}}
	s.ended.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.ended.Go(func() { s.request(host) })
			}
		}
	})
	t.Cleanup(func() { s.end(); transport.CloseIdleConnections() })
	return s
}

func (s *paced) request(host string) {
	what := ""
	res, err := s.client.Get("http://" + host + "/") //nolint:noctx // it has a time limit
	if err != nil {
		what = err.Error()
	} else {
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			what = fmt.Sprintf("status %d: %s", res.StatusCode, clipped(text))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	if what != "" {
		s.wrong[what]++
	}
}

// end stops the load, and returns how many requests were sent, and how many failed, by how.
func (s *paced) end() (sent, failed int, wrong map[string]int) {
	s.stop()
	s.ended.Wait()
	for _, n := range s.wrong {
		failed += n
	}
	return s.sent, failed, s.wrong
}

// TestRollingRestart protects the requests to a backend of which three pods of ten end at a time, with nothing but
// defaults. A pod stops listening the moment that it is said to be terminating, or a little later, as one does whose preStop
// hook sleeps.
func TestRollingRestart(t *testing.T) {
	slow.Skip(t)
	for _, c := range []struct {
		name  string
		sleep time.Duration
		limit float64 // a request may be on its way to a pod that closes its connections at that moment
	}{
		{"which stop at once", 0, 5},
		{"which stop after 0.3 s", 300 * time.Millisecond, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var pods []*podServer
			for range 10 {
				pods = append(pods, startPodServer(t))
			}
			s := newSite(t, map[string]string{"pods.yaml": podsManifest(pods), "home.yaml": siteRoute("home", "home.example", "pods")})
			s.serves200(t, "home.example")
			load := startPaced(t, s.listener(), "home.example", 200)
			for round := range 10 {
				var leaving []*podServer
				for i := range 3 {
					p := pods[(round*3+i)%len(pods)]
					p.terminating = true
					leaving = append(leaving, p)
				}
				s.write(t, "pods.yaml", podsManifest(pods))
				time.Sleep(c.sleep)
				for _, p := range leaving {
					p.shutdown(t)
				}
				for i := range 3 {
					pods[(round*3+i)%len(pods)] = startPodServer(t)
				}
				s.write(t, "pods.yaml", podsManifest(pods))
				time.Sleep(500 * time.Millisecond)
			}
			sent, failed, wrong := load.end()
			t.Logf("%d requests, wrong are %v", sent, wrong)
			if float64(failed) > c.limit {
				t.Errorf("%d requests failed, at most %v may", failed, c.limit)
			}
			record06(t, bars.Bar{Name: "backend of 10 endpoints " + c.name + ", restarted 3 times over, 3 at a time, 200 requests a second, defaults: failed"}.
				Measured(float64(failed)))
		})
	}
}

// TestDeadEndpoint protects requests from one of three endpoints that listens no longer and is still said to be ready.
func TestDeadEndpoint(t *testing.T) {
	slow.Skip(t)
	for _, c := range []struct {
		name, policy string
		limit        float64 // in percent
	}{
		{"health checks and outlier detection, no retries", "{request: {retry: {attempts: 0}}, backend: {healthCheck: {type: TCP, interval: 500ms, timeout: 500ms}, outlierDetection: {consecutiveErrors: 3, interval: 1s}}}", 0.5},
		{"outlier detection alone, no retries", "{request: {retry: {attempts: 0}}, backend: {outlierDetection: {consecutiveErrors: 3, interval: 1s}}}", 0.5},
		{"defaults", "{}", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			pods := []*podServer{startPodServer(t), startPodServer(t), startPodServer(t)}
			policy := ""
			if c.policy != "{}" {
				policy = "apiVersion: gatehouse.dev/v1alpha1\nkind: TrafficPolicy\nmetadata: {name: p, namespace: " + siteNamespace +
					"}\nspec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: home}]\n  defaults: " + c.policy + "\n"
			}
			s := newSite(t, map[string]string{"pods.yaml": podsManifest(pods), "home.yaml": siteRoute("home", "home.example", "pods"), "policy.yaml": policy})
			s.serves200(t, "home.example")
			load := startPaced(t, s.listener(), "home.example", 200)
			time.Sleep(2 * time.Second)
			pods[1].shutdown(t)
			time.Sleep(20 * time.Second)
			sent, failed, wrong := load.end()
			t.Logf("%d requests, wrong are %v", sent, wrong)
			share := 100 * float64(failed) / float64(sent)
			if share > max(c.limit, 0.2) { // a few may be on their way when it closes its connections
				t.Errorf("%.2f %% of the requests failed", share)
			}
			record06(t, bars.Bar{Name: "one endpoint of three stops listening, 22 s of 200 requests a second, " + c.name + ": failed", Unit: "%", Limit: c.limit}.Measured(share))
		})
	}
}

// serves200 waits until a host is answered.
func (s *site) serves200(t *testing.T, host string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		o, err := s.call("http://" + host + "/")
		if err != nil {
			return err
		}
		if o.status != http.StatusOK {
			return fmt.Errorf("status %d", o.status)
		}
		return nil
	})
}

// record06 keeps a figure of part 6 where that is asked for.
func record06(t *testing.T, figure bars.Figure) {
	t.Helper()
	t.Log(figure)
	if os.Getenv("GATEHOUSE_RECORD") != "" {
		if err := bars.Record("../../"+bars.File("06"), bars.Here(t.Context()), []bars.Figure{figure}); err != nil {
			t.Error(err)
		}
	}
}
