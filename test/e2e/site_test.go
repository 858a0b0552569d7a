//go:build linux

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// site is a process of its own with one Gateway, for tests that disturb it.
type site struct {
	*process
	address string
}

const (
	siteNamespace = "site"
	// siteTimeout bounds how long a change of a site may take.
	siteTimeout = 15 * time.Second
)

// startSite starts a process with a Gateway of an HTTP listener on port 80, an
// echo Service v1 and v2, and a route of host home.example to v1; further
// manifests by file name.
func startSite(t *testing.T, manifests map[string]string, args ...string) *site {
	t.Helper()
	s := newSite(t, manifests, args...)
	s.serves(t, "home.example", "v1")
	return s
}

// newSite is startSite for those whom plain requests don't reach.
func newSite(t *testing.T, manifests map[string]string, args ...string) *site {
	t.Helper()
	needTools(t)
	s := &site{address: newAddress()}
	all := map[string]string{
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}"),
		"backends.yaml": mustBackend(t, siteNamespace, "v1", "v1") +
			mustBackend(t, siteNamespace, "v2", "v2"),
		"home.yaml": siteRoute("home", "home.example", "v1"),
	}
	maps.Copy(all, manifests)
	s.process = startProcess(t, all, append([]string{"--bind", s.address, "--port-offset", strconv.Itoa(portOffset)}, args...)...)
	return s
}

// siteGateway returns the Gateway with listeners in flow notation.
func siteGateway(listeners ...string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: %s}
spec:
  gatewayClassName: gatehouse
  listeners:
  - %s
`, siteNamespace, strings.Join(listeners, "\n  - "))
}

// siteRoute returns a route of one host to one Service.
func siteRoute(name, host, service string) string {
	return siteRules(name, host, fmt.Sprintf("- backendRefs: [{name: %s, port: 8080}]", service))
}

// siteRules returns a route of one host with rules, a YAML list.
func siteRules(name, host, rules string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s, namespace: %s}
spec:
  parentRefs: [{name: gw}]
  hostnames: [%s]
  rules:
%s
`, name, siteNamespace, host, indent(rules))
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}

// listener is where port 80 listens.
func (s *site) listener() string { return net.JoinHostPort(s.address, strconv.Itoa(80+portOffset)) }

// call sends one request.
func (s *site) call(target string) (*outcome, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	return (&clientCall{method: http.MethodGet, url: u, address: s.address}).do(context.Background())
}

// answers waits until a URL is answered with the status.
func (s *site) answers(t *testing.T, target string, status int) *outcome {
	t.Helper()
	var last *outcome
	eventually(t, siteTimeout, func() error {
		o, err := s.call(target)
		if err != nil {
			return err
		}
		if o.status != status {
			return fmt.Errorf("%s is answered %d, want %d: %s", target, o.status, status, clipped(o.body))
		}
		last = o
		return nil
	})
	return last
}

// serves waits until a host is answered by a backend.
func (s *site) serves(t *testing.T, host, name string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		o, err := s.call("http://" + host + "/")
		if err != nil {
			return err
		}
		return (&expectation{Status: codes{http.StatusOK}, Backend: name}).check(o)
	})
}

// conditions waits until a part of an object's status has the conditions.
func (s *site) conditions(t *testing.T, object, of string, are ...string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		report, err := s.status()
		if err != nil {
			return err
		}
		return (&step{Conditions: object, Of: of, Are: are}).checkStatus(report, siteNamespace)
	})
}

// says waits until some condition of the object has a message with the text.
func (s *site) says(t *testing.T, object, text string) {
	t.Helper()
	s.saysOf(t, siteNamespace, object, text)
}

// saysOf is says of an object of a namespace.
func (s *site) saysOf(t *testing.T, namespace, object, text string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		report, err := s.status()
		if err != nil {
			return err
		}
		item, err := report.find(object, namespace)
		if err != nil {
			return err
		}
		conditions := item.Status.Conditions
		for _, l := range item.Status.Listeners {
			conditions = append(conditions, l.Conditions...)
		}
		for _, p := range item.parts() {
			conditions = append(conditions, p.conditions...)
		}
		var all []string
		for _, c := range conditions {
			if strings.Contains(c.Message, text) {
				return nil
			}
			all = append(all, c.Message)
		}
		return fmt.Errorf("no condition of %s speaks of %q: %q", object, text, all)
	})
}
