//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/port"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// TestEnvoyKilled protects against a proxy that stays away: it is back and
// serves two seconds after it was killed.
func TestEnvoyKilled(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	pid := s.envoyPID(t)
	killed := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, siteTimeout, func() error {
		if pids := s.envoys(); len(pids) != 1 || pids[0] == pid {
			return fmt.Errorf("Envoys: %v", pids)
		}
		return nil
	})
	s.serves(t, "home.example", "v1")
	if took := time.Since(killed); took > 2*time.Second {
		t.Errorf("it took %s until Envoy served again", took)
	}
	s.conditions(t, "Gateway gw", "", "Programmed=True")
}

// TestEnvoyStandsStill protects against a proxy that is there and does nothing: the
// status says so, and another one is there in the documented time.
func TestEnvoyStandsStill(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	s := startSite(t, nil)
	pid := s.envoyPID(t)
	stopped := time.Now()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, siteTimeout, func() error {
		if out, err := s.run("status", "--state-dir", s.state); !strings.Contains(out, "stalled") {
			return fmt.Errorf("no stalled Envoy in\n%s: %w", out, err)
		}
		return nil
	})
	s.says(t, "Gateway gw", "Waiting for a proxy to connect")
	eventually(t, siteTimeout, func() error {
		if pids := s.envoys(); len(pids) != 1 || pids[0] == pid {
			return fmt.Errorf("Envoys: %v", pids)
		}
		return nil
	})
	s.serves(t, "home.example", "v1")
	if took := time.Since(stopped); took > 20*time.Second {
		t.Errorf("it took %s until another Envoy served", took)
	}
	s.conditions(t, "Gateway gw", "", "Programmed=True")
}

// TestControlPlaneKilled protects the traffic from the control plane's end: its
// Envoy goes on, the next run takes it over without sending it anything again,
// and changes made meanwhile take effect.
func TestControlPlaneKilled(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	pid := s.envoyPID(t)
	before := s.envoyStats(t, "manager")
	l := startLoad(t, s.listener(), loadClients, func() string { return "home.example" })
	l.more(t, 100)
	if s.sent(t) == 0 {
		t.Error("nothing was sent to a new Envoy")
	}
	s.kill()
	l.more(t, 200)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	if err := s.waitReady(); err != nil {
		t.Fatal(err)
	}
	l.more(t, 200)
	if now := s.envoyPID(t); now != pid {
		t.Errorf("Envoy %d was replaced by %d", pid, now)
	}
	err := sameStats(before, s.envoyStats(t, "manager"), "cluster_manager.cluster_added", "cluster_manager.cluster_modified",
		"cluster_manager.cluster_removed", "listener_manager.listener_added", "listener_manager.listener_modified")
	if err != nil {
		t.Error(err)
	}
	if n := s.sent(t); n != 0 {
		t.Errorf("%d resources were sent to an Envoy that had them all", n)
	}
	s.conditions(t, "Gateway gw", "", "Programmed=True")

	s.kill()
	s.write(t, "later.yaml", siteRoute("later", "later.example", "v2"))
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	if err := s.waitReady(); err != nil {
		t.Fatal(err)
	}
	s.serves(t, "later.example", "v2")
	if wrong := l.end(); len(wrong) > 0 {
		t.Errorf("of %d requests, not 200: %v", l.sent.Load(), wrong)
	}
}

// sent is how many resources the control plane has sent to its proxies.
func (p *process) sent(t *testing.T) int {
	t.Helper()
	_, body, err := p.get("/debug/xds")
	if err != nil {
		t.Fatal(err)
	}
	var debug struct {
		Sessions []struct {
			Types []struct{ Sent int }
		}
	}
	if err := json.Unmarshal([]byte(body), &debug); err != nil || len(debug.Sessions) == 0 {
		t.Fatalf("/debug/xds: %v\n%s", err, clipped([]byte(body)))
	}
	n := 0
	for _, session := range debug.Sessions {
		for _, one := range session.Types {
			n += one.Sent
		}
	}
	return n
}

// TestGracefulStop protects requests in flight when the process is asked to end,
// and the shell that reads its exit code.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	b, err := backend("v1")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		o, err := s.call("http://home.example/?delay=1s&key=" + t.Name())
		if err == nil && o.status != http.StatusOK {
			err = fmt.Errorf("status %d", o.status)
		}
		done <- err
	}()
	eventually(t, siteTimeout, func() error {
		if b.Requests().Count(t.Name()) == 0 {
			return fmt.Errorf("the request has not arrived")
		}
		return nil
	})
	code, err := s.terminate()
	if err != nil {
		t.Fatal(err)
	}
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if err := <-done; err != nil {
		t.Errorf("the request in flight: %v", err)
	}
	if pids := s.envoys(); len(pids) > 0 {
		t.Errorf("Envoys are left: %v", pids)
	}
	if conn, err := net.Dial("tcp", s.listener()); err == nil {
		_ = conn.Close()
		t.Error("the port is still open")
	}
}

// TestGatewayRemoved protects the machine: the Envoy of a Gateway that is gone
// ends, and comes back with it.
func TestGatewayRemoved(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	gateway := siteGateway("{name: http, port: 80, protocol: HTTP}")
	s.remove(t, "gateway.yaml")
	eventually(t, stopTimeout, func() error {
		if pids := s.envoys(); len(pids) > 0 {
			return fmt.Errorf("Envoys: %v", pids)
		}
		return nil
	})
	s.write(t, "gateway.yaml", gateway)
	s.serves(t, "home.example", "v1")
}

// TestDefaultBind protects machines from being open to the network: without
// --bind the listeners are on 127.0.0.1 only.
func TestDefaultBind(t *testing.T) {
	t.Parallel()
	needTools(t)
	port := port.OfTest(t)
	p := startProcess(t, map[string]string{
		"all.yaml": siteGateway(fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", port)) +
			mustBackend(t, siteNamespace, "v1", "v1") + siteRoute("home", "home.example", "v1"),
	})
	eventually(t, siteTimeout, func() error { return answersOn(net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) })
	if conn, err := net.Dial("tcp", net.JoinHostPort(newAddress(), strconv.Itoa(port))); err == nil {
		_ = conn.Close()
		t.Error("another loopback address answers as well: the listener is not on 127.0.0.1 only")
	}
	_ = p
}

// TestBindAddresses protects --bind: several addresses, IPv6 among them, each
// serve, and the Gateway's status names them.
func TestBindAddresses(t *testing.T) {
	t.Parallel()
	needTools(t)
	port, address := port.OfTest(t), newAddress()
	p := startProcess(t, map[string]string{
		"all.yaml": siteGateway(fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", port)) +
			mustBackend(t, siteNamespace, "v1", "v1") + siteRoute("home", "home.example", "v1"),
	}, "--bind", address, "--bind", "::1")
	s := &site{process: p, address: address}
	for _, host := range []string{address, "::1"} {
		eventually(t, siteTimeout, func() error { return answersOn(net.JoinHostPort(host, strconv.Itoa(port))) })
	}
	addresses := []string{address, "::1"}
	eventually(t, siteTimeout, func() error {
		report, err := s.status()
		if err != nil {
			return err
		}
		return (&step{Conditions: "Gateway gw", Addresses: &addresses}).checkStatus(report, siteNamespace)
	})
}

// TestPortTaken protects the other listeners from one whose port somebody else
// has: it alone is not programmed, and says what to do.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	needTools(t)
	s := &site{address: newAddress()}
	occupy(t, net.JoinHostPort(s.address, strconv.Itoa(8080+portOffset)))
	s.process = startProcess(t, map[string]string{
		"all.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}", "{name: taken, port: 8080, protocol: HTTP}") +
			mustBackend(t, siteNamespace, "v1", "v1") + siteRoute("home", "home.example", "v1"),
	}, "--bind", s.address, "--port-offset", strconv.Itoa(portOffset))
	s.serves(t, "home.example", "v1")
	s.conditions(t, "Gateway gw", "taken", "Programmed=False")
	s.conditions(t, "Gateway gw", "http", "Programmed=True")
	s.says(t, "Gateway gw", strconv.Itoa(8080+portOffset))
}

// TestPortOfAnotherGateway protects the first Gateway of two that want the same
// port of the same address.
func TestPortOfAnotherGateway(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	s.write(t, "second.yaml", fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: second, namespace: %s}
spec:
  gatewayClassName: gatehouse
  listeners:
  - {name: same, port: 80, protocol: HTTP}
  - {name: own, port: 81, protocol: HTTP}
`, siteNamespace)+`---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: second, namespace: site}
spec:
  parentRefs: [{name: second}]
  rules: [{backendRefs: [{name: v2, port: 8080}]}]
`)
	s.conditions(t, "Gateway second", "same", "Programmed=False")
	s.conditions(t, "Gateway second", "own", "Programmed=True")
	s.answers(t, "http://any.example:81/", http.StatusOK)
	s.serves(t, "home.example", "v1")
}

// TestStateDirInUse protects a running process from a second one with the same
// state directory.
func TestStateDirInUse(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	address, err := os.ReadFile(filepath.Join(s.state, "admin.addr"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.run("run", "--admin", "127.0.0.1:0", "--envoy", s.envoy, "--state-dir", s.state, s.dir)
	if code := exitCode(err); code != 1 {
		t.Fatalf("a second process ended with %d, want 1: %v\n%s", code, err, out)
	}
	now, err := os.ReadFile(filepath.Join(s.state, "admin.addr"))
	if err != nil || string(now) != string(address) {
		t.Errorf("admin.addr is %q (%v), was %q", now, err, address)
	}
	s.serves(t, "home.example", "v1")
}

// answersOn asks one address directly.
func answersOn(address string) error {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequest(http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return err
	}
	req.Host = "home.example"
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d", address, res.StatusCode)
	}
	return nil
}
