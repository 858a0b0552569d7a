//go:build linux

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// testTrafficTimeout protects that a policy bounds requests where their rule does not, which has the last word.
func testTrafficTimeout(t *testing.T, s *site) {
	s.set(t, "traffic.yaml", onGateway, "request: {timeout: 200ms}")
	s.answers(t, homeURL+"?delay=2s", http.StatusGatewayTimeout)
	s.answers(t, homeURL, http.StatusOK)
	s.write(t, "home.yaml", siteRules("home", "home.example", "- {timeouts: {request: 10s}, backendRefs: [{name: v1, port: 8080}]}"))
	s.answers(t, homeURL+"?delay=500ms", http.StatusOK)
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v1"))
	s.answers(t, homeURL+"?delay=2s", http.StatusGatewayTimeout)
	s.set(t, "own.yaml", onHome, "request: {timeout: 0s}")
	s.answers(t, homeURL+"?delay=500ms", http.StatusOK)
	s.remove(t, "own.yaml")
}

// testIdleTimeout protects that streams in which nothing moves end, and not those in which something does.
func testIdleTimeout(t *testing.T, s *site) {
	s.set(t, "traffic.yaml", onGateway, "request: {idleTimeout: 300ms}")
	s.answers(t, homeURL+"?delay=5s", http.StatusGatewayTimeout)
	s.set(t, "traffic.yaml", onGateway, "request: {idleTimeout: 0s}")
	s.answers(t, homeURL+"?delay=500ms", http.StatusOK)
}

// testTrafficRetry protects that a policy repeats requests, by its codes or where none was taken, and that the
// retry of a rule is in its place.
func testTrafficRetry(t *testing.T, s *site) {
	n := 0
	// fails asks a backend that fails twice.
	fails := func() string {
		n++
		return fmt.Sprintf("%s?status=503&times=2&key=retry-%s-%d", homeURL, s.address, n)
	}
	status := func() int { return s.answer(t, fails(), "", nil).status }
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("without a policy: %d", got)
	}
	s.set(t, "traffic.yaml", onGateway, "request: {retry: {attempts: 2, codes: [503], backoff: 5ms}}")
	if got := status(); got != http.StatusOK {
		t.Errorf("with two retries: %d", got)
	}
	s.set(t, "traffic.yaml", onGateway, "request: {retry: {attempts: 2}}")
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("what the backend has taken is repeated: %d", got)
	}
	s.set(t, "traffic.yaml", onGateway, "request: {retry: {attempts: 2, codes: [503], backoff: 5ms}}")
	s.write(t, "home.yaml", siteRules("home", "home.example", "- {retry: {attempts: 0}, backendRefs: [{name: v1, port: 8080}]}"))
	eventually(t, siteTimeout, func() error {
		if got := status(); got != http.StatusServiceUnavailable {
			return fmt.Errorf("the rule says never: %d", got)
		}
		return nil
	})
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v1"))
	eventually(t, siteTimeout, func() error {
		if got := status(); got != http.StatusOK {
			return fmt.Errorf("without the rule's: %d", got)
		}
		return nil
	})
	s.set(t, "own.yaml", onHome, "request: {retry: {attempts: 0}}")
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("switched off for the route: %d", got)
	}
	s.remove(t, "own.yaml")
}

// testBuffering protects that the backend sees nothing of a request before its body is there.
func testBuffering(t *testing.T, s *site) {
	sized := func(n int) io.Reader { return io.MultiReader(strings.NewReader(strings.Repeat("x", n))) }
	s.set(t, "traffic.yaml", onGateway, "request: {buffering: {maxSize: 100k}}")
	if o := s.send(t, homeURL, sized(100_000), nil); o.status != http.StatusOK {
		t.Errorf("as large as may be: %d", o.status)
	}
	if o := s.send(t, homeURL, sized(100_001), nil); o.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a byte more: %d", o.status)
	}
	// The backend answers with headers of the request at once, if it sees them.
	half := func() (answered bool) {
		conn, err := net.Dial("tcp", s.listener())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /?status=204 HTTP/1.1\r\nHost: home.example\r\nContent-Length: 10\r\n\r\nhalf")
		_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		_, err = http.ReadResponse(bufio.NewReader(conn), nil)
		return err == nil
	}
	if half() {
		t.Error("the backend has seen half of a request")
	}
	s.set(t, "own.yaml", onHome, "request: {buffering: {disabled: true}}")
	if o := s.send(t, homeURL, sized(200_000), nil); o.status != http.StatusOK {
		t.Errorf("switched off: %d", o.status)
	}
	s.remove(t, "own.yaml")
}

// lasts is how long a request takes that succeeds.
func (s *site) lasts(t *testing.T, target string, body io.Reader) time.Duration {
	t.Helper()
	begin := time.Now()
	if o := s.send(t, target, body, nil); o.status != http.StatusOK {
		t.Errorf("%s: %d", target, o.status)
	}
	return time.Since(begin)
}

// The bucket of a bandwidth is full at first: what is three times as much as passes in a second takes two seconds, less what came
// in while they passed.
const bandwidthBody, bandwidthTime = 300 << 10, time.Second

func testRequestBandwidth(t *testing.T, s *site) {
	body := func() io.Reader { return strings.NewReader(strings.Repeat("x", bandwidthBody)) }
	s.set(t, "traffic.yaml", onGateway, "request: {bandwidth: 100Ki}")
	if d := s.lasts(t, homeURL, body()); d < bandwidthTime {
		t.Errorf("with a bandwidth it takes %s", d)
	}
	s.set(t, "own.yaml", onHome, "request: {bandwidth: Unlimited}")
	if d := s.lasts(t, homeURL, body()); d > bandwidthTime {
		t.Errorf("without one it takes %s", d)
	}
	s.remove(t, "own.yaml")
}

func testResponseBandwidth(t *testing.T, s *site) {
	s.farm(t, serve(t, says(strings.Repeat("x", bandwidthBody))))
	s.answers(t, farmURL, http.StatusOK)
	s.set(t, "traffic.yaml", onGateway, "response: {bandwidth: 100Ki}")
	if d := s.lasts(t, farmURL, http.NoBody); d < bandwidthTime {
		t.Errorf("with a bandwidth it takes %s", d)
	}
	s.set(t, "own.yaml", "kind: HTTPRoute, name: farm", "response: {bandwidth: Unlimited}")
	if d := s.lasts(t, farmURL, http.NoBody); d > bandwidthTime {
		t.Errorf("without one it takes %s", d)
	}
	s.remove(t, "own.yaml")
}

func testAdmissionControl(t *testing.T, s *site) {
	s.farm(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	s.answers(t, farmURL, http.StatusInternalServerError)
	turnedAway := func() (n int) {
		t.Helper()
		for range 50 {
			switch status := s.send(t, farmURL, http.NoBody, nil).status; status {
			case http.StatusServiceUnavailable:
				n++
			case http.StatusInternalServerError:
			default:
				t.Errorf("it is answered with %d", status)
			}
		}
		return n
	}
	s.set(t, "traffic.yaml", onGateway, "request: {admissionControl: {minRequestRate: 0}}")
	eventually(t, siteTimeout, func() error {
		if turnedAway() == 0 {
			return errors.New("nothing is turned away")
		}
		return nil
	})
	s.answers(t, homeURL, http.StatusOK) // of another host
	s.set(t, "own.yaml", "kind: HTTPRoute, name: farm", "request: {admissionControl: {disabled: true}}")
	if n := turnedAway(); n > 0 {
		t.Errorf("switched off it turns %d of 50 away", n)
	}
	s.remove(t, "own.yaml")
}
