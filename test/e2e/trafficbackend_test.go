//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

const farmURL = "http://farm.example/"

// farm is a Service with a route, whose endpoints are at ports of this machine.
func (s *site) farm(t *testing.T, ports ...int) {
	t.Helper()
	s.farmOf(t, "http", ports...)
}

// farmOf is farm of servers that speak a protocol.
func (s *site) farmOf(t *testing.T, protocol string, ports ...int) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Service\nmetadata: {name: farm, namespace: %s}\nspec: {ports: [{name: http, port: 8080, appProtocol: %s}]}\n", siteNamespace, protocol)
	for i, port := range ports {
		fmt.Fprintf(&b, `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: farm-%[1]d, namespace: %[2]s, labels: {kubernetes.io/service-name: farm}}
addressType: IPv4
ports: [{name: http, port: %[3]d}]
endpoints: [{addresses: [127.0.0.1]}]
`, i, siteNamespace, port)
	}
	s.write(t, "farm.yaml", b.String()+siteRoute("farm", "farm.example", "farm"))
}

// serve starts a server, and returns its port.
func serve(t *testing.T, h http.HandlerFunc) int {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port
}

// says answers with a text.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

// overGRPC is says of a server that is asked for its health over gRPC.
func overGRPC(text string, status healthv1.HealthCheckResponse_ServingStatus) http.HandlerFunc {
	server, state := grpc.NewServer(), health.NewServer()
	state.SetServingStatus("", status)
	healthv1.RegisterHealthServer(server, state)
	plain := says(text)
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			server.ServeHTTP(w, r)
		} else {
			plain(w, r)
		}
	}
}

// bodies asks so often, and returns all answers.
func (s *site) bodies(t *testing.T, n int) (all []string) {
	t.Helper()
	for range n {
		o := s.answer(t, farmURL, "", nil)
		all = append(all, fmt.Sprint(o.status, " ", string(o.body)))
	}
	return all
}

// onlyOne waits until all of many requests have the answer.
func (s *site) onlyOne(t *testing.T, when, answer string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		for _, got := range s.bodies(t, 20) {
			if got != answer {
				return fmt.Errorf("%s: %q, want only %q", when, got, answer)
			}
		}
		return nil
	})
}

// mixed waits until some of many requests have the answer, and others haven't.
func (s *site) mixed(t *testing.T, when, answer string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		n := 0
		all := s.bodies(t, 20)
		for _, got := range all {
			if got == answer {
				n++
			}
		}
		if n == 0 || n == len(all) {
			return fmt.Errorf("%s: %d of %d are %q", when, n, len(all), answer)
		}
		return nil
	})
}

// testConnectTimeout protects that an endpoint which does not accept connections costs no more than is said.
func testConnectTimeout(t *testing.T, s *site) {
	// A queue of one connection, which is full: the kernel leaves all others without an answer.
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := at.(*syscall.SockaddrInet4).Port
	for {
		conn, err := net.DialTimeout("tcp", fmt.Sprint("127.0.0.1:", port), 200*time.Millisecond)
		if err != nil {
			break
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	s.set(t, "traffic.yaml", onGateway, "backend: {connectTimeout: 300ms}")
	s.farm(t, port)
	s.answers(t, farmURL, http.StatusServiceUnavailable)
	started := time.Now()
	o := s.answer(t, farmURL, "", nil)
	if took := time.Since(started); o.status != http.StatusServiceUnavailable || took < 250*time.Millisecond || took > 4*time.Second {
		t.Errorf("%d after %s", o.status, took)
	}
}

// testConnections protects that connections end after so many requests, or so long.
func testConnections(t *testing.T, s *site) {
	s.farm(t, serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.RemoteAddr)) }))
	s.answers(t, farmURL, http.StatusOK)
	distinct := func() int {
		seen := map[string]bool{}
		for _, body := range s.bodies(t, 20) {
			seen[body] = true
		}
		return len(seen)
	}
	if n := distinct(); n == 20 {
		t.Errorf("without a policy there are %d connections", n)
	}
	s.set(t, "traffic.yaml", onGateway, "backend: {connections: {maxRequests: 1, keepAlive: 30s}}")
	eventually(t, siteTimeout, func() error {
		if n := distinct(); n != 20 {
			return fmt.Errorf("%d connections for 20 requests", n)
		}
		return nil
	})
	s.set(t, "traffic.yaml", onGateway, "backend: {connections: {idleTimeout: 1h}}")
	eventually(t, siteTimeout, func() error {
		if n := distinct(); n == 20 {
			return fmt.Errorf("%d connections for 20 requests", n)
		}
		return nil
	})
}

// testCircuitBreaker protects that what is too much at once is refused, and not what comes after.
func testCircuitBreaker(t *testing.T, s *site) {
	arrived, release := make(chan struct{}), make(chan struct{})
	s.farm(t, serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			arrived <- struct{}{}
			<-release
		}
	}))
	s.answers(t, farmURL, http.StatusOK)
	s.set(t, "traffic.yaml", onGateway, "backend: {circuitBreaker: {maxConnections: 10, maxPendingRequests: 10, maxRequests: 1}}")
	s.answers(t, farmURL, http.StatusOK)
	done := make(chan int)
	go func() {
		o, err := s.call(farmURL + "wait")
		if err != nil {
			o = &outcome{}
		}
		done <- o.status
	}()
	<-arrived
	if got := s.answer(t, farmURL, "", nil).status; got != http.StatusServiceUnavailable {
		t.Errorf("a request too many: %d", got)
	}
	s.answers(t, homeURL, http.StatusOK)
	close(release)
	if got := <-done; got != http.StatusOK {
		t.Errorf("the first request: %d", got)
	}
	s.answers(t, farmURL, http.StatusOK)
}

// testRetryBudget protects that retries beyond the budget are left out.
func testTrafficRetryBudget(t *testing.T, s *site) {
	var attempts atomic.Int64
	repeated, release := make(chan struct{}), make(chan struct{})
	s.farm(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch n := attempts.Add(1); {
		case r.URL.Path != "/fail":
		case n == 2:
			close(repeated)
			<-release
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	s.answers(t, farmURL, http.StatusOK)
	s.set(t, "traffic.yaml", onGateway, "defaults: {request: {retry: {codes: [503]}}, backend: {retryBudget: {percent: 0, minRetries: 1}}}")
	s.answers(t, farmURL, http.StatusOK)
	attempts.Store(0)
	done := make(chan int)
	go func() {
		o, err := s.call(farmURL + "fail")
		if err != nil {
			o = &outcome{}
		}
		done <- o.status
	}()
	<-repeated
	if got := s.answer(t, farmURL+"fail", "", nil).status; got != http.StatusServiceUnavailable || attempts.Load() != 3 {
		t.Errorf("beside a retry: %d after %d attempts in all, want 3", got, attempts.Load())
	}
	close(release)
	if got := <-done; got != http.StatusOK {
		t.Errorf("the retry: %d", got)
	}
}

// testOutlierDetection protects that an endpoint which fails gets nothing for a while.
func testOutlierDetection(t *testing.T, s *site) {
	s.farm(t, serve(t, says("good")), serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	s.mixed(t, "without a policy", "200 good")
	s.set(t, "traffic.yaml", onGateway, "backend: {outlierDetection: {consecutiveErrors: 1, interval: 1s, ejectionTime: 1h}}")
	s.onlyOne(t, "with one", "200 good")
	s.set(t, "own.yaml", "kind: HTTPRoute, name: farm", "backend: {outlierDetection: {disabled: true}}")
	s.mixed(t, "switched off", "200 good")
	s.remove(t, "own.yaml")
}

// testHealthCheck protects that endpoints which are not well get nothing until they are, by each kind of check.
func testHealthCheck(t *testing.T, s *site) {
	var well atomic.Bool
	var host atomic.Value
	good := serve(t, says("good"))
	s.farm(t, good, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			_, _ = w.Write([]byte("bad"))
			return
		}
		host.Store(r.Host)
		if !well.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	s.mixed(t, "without a policy", "200 good")
	s.set(t, "traffic.yaml", onGateway, "backend: {healthCheck: {type: HTTP, http: {path: /healthz}, interval: 100ms, unhealthyThreshold: 1}}")
	s.onlyOne(t, "by HTTP", "200 good")
	if got := host.Load(); got != "farm."+siteNamespace+".svc" {
		t.Errorf("the check asks for host %v", got)
	}
	well.Store(true)
	s.mixed(t, "well again", "200 good")
	// Where nobody listens.
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	s.farm(t, good, closed)
	s.set(t, "traffic.yaml", onGateway, "backend: {healthCheck: {type: TCP, interval: 100ms, unhealthyThreshold: 1}}")
	s.onlyOne(t, "by TCP", "200 good")
	// A backend that speaks HTTP/1.1 has no check of gRPC.
	s.set(t, "traffic.yaml", onGateway, "defaults: {request: {retry: {attempts: 0}}, backend: {healthCheck: {type: GRPC, interval: 100ms, unhealthyThreshold: 1}}}")
	s.mixed(t, "by gRPC over HTTP/1.1", "200 good")
	s.farmOf(t, "kubernetes.io/h2c", serve(t, overGRPC("good", healthv1.HealthCheckResponse_SERVING)), serve(t, overGRPC("bad", healthv1.HealthCheckResponse_NOT_SERVING)))
	s.onlyOne(t, "by gRPC", "200 good")
	s.farm(t, good, closed)
	s.set(t, "traffic.yaml", onGateway, "defaults: {request: {retry: {attempts: 0}}, backend: {healthCheck: {disabled: true}}}")
	s.mixed(t, "switched off", "200 good")
}

// testFaults protects that faults are made for a share of the requests, and go again.
func testFaults(t *testing.T, s *site) {
	s.set(t, "traffic.yaml", onGateway, "request: {faults: {abort: {status: 418}, delay: {duration: 300ms}}}")
	started := time.Now()
	if got := s.answer(t, homeURL, "", nil).status; got != http.StatusTeapot || time.Since(started) < 250*time.Millisecond {
		t.Errorf("%d after %s", got, time.Since(started))
	}
	s.set(t, "traffic.yaml", onGateway, "request: {faults: {abort: {percent: 50}}}")
	n := 0
	for range 40 {
		if s.answer(t, homeURL, "", nil).status == http.StatusServiceUnavailable {
			n++
		}
	}
	if n == 0 || n == 40 {
		t.Errorf("%d of 40 requests are answered 503", n)
	}
	s.set(t, "own.yaml", onHome, "request: {faults: {disabled: true}}")
	for range 20 {
		if got := s.answer(t, homeURL, "", nil).status; got != http.StatusOK {
			t.Errorf("switched off: %d", got)
		}
	}
	s.remove(t, "own.yaml")
}

// testRoutingType protects that requests go to the cluster IP where that is wanted, and to endpoints where there is none.
func testRoutingType(t *testing.T, s *site) {
	said := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
	}
	endpoint, behind := serve(t, said("endpoint")), serve(t, said("cluster IP"))
	farm := func(ip string) string {
		return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: farm, namespace: %[1]s}
spec: {clusterIP: %[4]s, ports: [{name: http, port: %[2]d}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: farm, namespace: %[1]s, labels: {kubernetes.io/service-name: farm}}
addressType: IPv4
ports: [{name: http, port: %[3]d}]
endpoints: [{addresses: [127.0.0.1]}]
`, siteNamespace, behind, endpoint, ip) + siteRules("farm", "farm.example", fmt.Sprintf("- backendRefs: [{name: farm, port: %d}]", behind))
	}
	answers := func(want string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			if o := s.answer(t, farmURL, "", nil); string(o.body) != want {
				return fmt.Errorf("%d %s, not from the %s", o.status, o.body, want)
			}
			return nil
		})
	}
	s.write(t, "farm.yaml", farm("127.0.0.1"))
	answers("endpoint")
	s.set(t, "traffic.yaml", onGateway, "backend: {routingType: Service}")
	answers("cluster IP")
	s.write(t, "farm.yaml", farm("None"))
	answers("endpoint")
}

// testBackendClusters has a Service of three clusters, of which one has no name.
func testBackendClusters(t *testing.T, s *site) {
	manifest := fmt.Sprintf("---\napiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceImport\nmetadata: {name: farm, namespace: %s}\nspec: {type: ClusterSetIP, ports: [{name: http, port: 8080}]}\n", siteNamespace)
	for _, name := range []string{"east", "west", ""} {
		manifest += fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: farm-x%[1]s, namespace: %[2]s, labels: {multicluster.kubernetes.io/service-name: farm, multicluster.kubernetes.io/source-cluster: "%[1]s"}}
addressType: IPv4
ports: [{name: http, port: %[3]d}]
endpoints: [{addresses: [127.0.0.1]}]
`, name, siteNamespace, serve(t, says("from "+name)))
	}
	s.write(t, "farm.yaml", manifest+siteRules("farm", "farm.example",
		"- backendRefs: [{group: multicluster.x-k8s.io, kind: ServiceImport, name: farm, port: 8080}]"))
	s.mixed(t, "with nothing said", "200 from west")
	s.set(t, "traffic.yaml", onGateway, "backend: {clusters: {order: [{name: west}]}}")
	s.onlyOne(t, "the one that is named", "200 from west")
	s.set(t, "traffic.yaml", onGateway, "backend: {clusters: {order: [{name: west, weight: 0}, {name: east, priority: 3}]}}")
	s.onlyOne(t, "the only one above those without a name", "200 from east")
	s.set(t, "traffic.yaml", onGateway, "backend: {clusters: {order: [{name: west, weight: 0}, {name: east, weight: 0}]}}")
	s.onlyOne(t, "the only one that is left", "200 from ")
	s.set(t, "traffic.yaml", onGateway, "backend: {clusters: {order: [{name: west, weight: 1}, {name: east, weight: 9}]}}")
	eventually(t, siteTimeout, func() error {
		n := map[string]int{}
		for _, got := range s.bodies(t, 200) {
			n[got]++
		}
		if west, east := n["200 from west"], n["200 from east"]; west == 0 || west+east != 200 || west > 60 {
			return fmt.Errorf("%v, want one in ten from west, and the others from east", n)
		}
		return nil
	})
	s.set(t, "traffic.yaml", onGateway, "backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: Header, header: {name: X-User}}}, clusters: {order: [{name: west}, {name: east, priority: 1}]}}")
	s.onlyOne(t, "with a hash", "200 from west")
}
