//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

// The files of a case that have a meaning of their own.
const (
	objectsFile  = "objects.yaml"
	requestsFile = "requests.yaml"
)

// testCase is one txtar file of testdata; README.md documents the format.
type testCase struct {
	name    string
	purpose string
	files   map[string]string // manifests, expanded, without requests.yaml
	steps   []step
}

// step is one entry of requests.yaml. Its first field that is a verb says what
// is done; verbs lists the fields that go with it.
type step struct {
	// A change of the watched files.
	Apply  []string `json:"apply"`
	Remove []string `json:"remove"`

	// What a client sends.
	Request           string            `json:"request"`
	GRPC              string            `json:"grpc"`
	TCP               int               `json:"tcp"`
	UDP               int               `json:"udp"`
	TLS               tlsValue          `json:"tls"`
	At                string            `json:"at"`
	Headers           map[string]string `json:"headers"`
	Metadata          map[string]string `json:"metadata"`
	Host              string            `json:"host"`
	Port              int               `json:"port"`
	Body              string            `json:"body"`
	Send              string            `json:"send"`
	Finish            bool              `json:"finish"`
	SNI               *string           `json:"sni"`
	ALPN              []string          `json:"alpn"`
	ClientCertificate string            `json:"clientCertificate"`
	HTTP2             bool              `json:"http2"`
	HTTP3             bool              `json:"http3"`
	Reuse             bool              `json:"reuse"`
	WebSocket         string            `json:"websocket"`
	Count             int               `json:"count"`
	Expect            *expectation      `json:"expect"`

	// A look at the status of an object.
	Conditions string    `json:"conditions"`
	Of         string    `json:"of"`
	Are        []string  `json:"are"`
	Attached   *int      `json:"attached"`
	Kinds      *[]string `json:"kinds"`
	Addresses  *[]string `json:"addresses"`
	Listeners  *[]string `json:"listeners"`
	Parents    *int      `json:"parents"`
	Features   []string  `json:"features"`

	call caller // what is sent; nil when nothing is
}

// expectation is what a call shall bring about.
type expectation struct {
	Status      codes             `json:"status"`
	Code        string            `json:"code"`
	Backend     string            `json:"backend"`
	Method      string            `json:"method"`
	Host        string            `json:"host"`
	Path        string            `json:"path"`
	Query       *string           `json:"query"`
	Proto       string            `json:"proto"`
	Body        string            `json:"body"`
	Reply       *string           `json:"reply"`
	Seen        map[string]values `json:"seen"`
	TLS         *backendTLS       `json:"tls"`
	Headers     map[string]values `json:"headers"`
	Redirect    *redirect         `json:"redirect"`
	Certificate string            `json:"certificate"`
	Within      duration          `json:"within"`
	AtLeast     duration          `json:"atLeast"`
	Failure     bool              `json:"failure"`
	Closed      bool              `json:"closed"`
	None        bool              `json:"none"`
	Arrived     map[string]amount `json:"arrived"`
	Share       map[string]int    `json:"share"`
}

// backendTLS is the TLS session that the backend saw.
type backendTLS struct {
	SNI  *string `json:"sni"`
	ALPN *string `json:"alpn"`
	Peer *string `json:"peer"` // subject of the client's certificate; "" for none
}

// redirect is the parts of a Location header that shall be so; what is not
// given may be anything.
type redirect struct {
	Scheme string   `json:"scheme"`
	Host   string   `json:"host"`
	Port   []string `json:"port"` // alternatives; "" means that none is given
	Path   string   `json:"path"`
	Query  *string  `json:"query"`
}

// parseCase reads a case and expands its templates with b.
func parseCase(path string, b *bindings) (*testCase, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	archive := txtar.Parse(data)
	c := &testCase{
		name:    strings.TrimSuffix(filepath.Base(path), ".txtar"),
		purpose: strings.TrimSpace(string(archive.Comment)),
		files:   map[string]string{},
	}
	if c.purpose == "" {
		return nil, fmt.Errorf("%s: the comment at the top must say what the case protects", path)
	}
	var requests string
	// The manifests first: they decide which addresses the requests go to.
	for _, f := range archive.Files {
		if f.Name == requestsFile {
			requests = string(f.Data)
			continue
		}
		text, err := b.expand(f.Name, string(f.Data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		c.files[f.Name] = text
	}
	if _, ok := c.files[objectsFile]; !ok {
		return nil, fmt.Errorf("%s: there is no %s", path, objectsFile)
	}
	if requests, err = b.expand(requestsFile, requests); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := yaml.UnmarshalStrict([]byte(requests), &c.steps); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, requestsFile, err)
	}
	if len(c.steps) == 0 {
		return nil, fmt.Errorf("%s: %s has no steps", path, requestsFile)
	}
	for i := range c.steps {
		if err := c.steps[i].prepare(c, b); err != nil {
			return nil, fmt.Errorf("%s: step %d (%s): %w", path, i+1, c.steps[i].title(), err)
		}
	}
	if answer := c.steps[0].Expect.vacuous(); answer != "" {
		return nil, fmt.Errorf("%s: the first step expects %s, which is also the answer before anything is configured", path, answer)
	}
	return c, nil
}

// title names a step in the test's output.
func (s *step) title() string {
	switch {
	case s.Request != "":
		return s.Request
	case s.GRPC != "":
		return "grpc " + s.GRPC
	case s.TCP > 0:
		return fmt.Sprintf("tcp %d", s.TCP)
	case s.UDP > 0:
		return fmt.Sprintf("udp %d", s.UDP)
	case s.Conditions != "":
		return "conditions of " + strings.TrimSpace(s.Conditions+" "+s.Of)
	case len(s.Apply) > 0:
		return "apply " + strings.Join(s.Apply, " ")
	case len(s.Remove) > 0:
		return "remove " + strings.Join(s.Remove, " ")
	default:
		return fmt.Sprintf("tls %d", s.TLS.port)
	}
}

// prepare checks a step and fills in what it leaves out.
func (s *step) prepare(c *testCase, b *bindings) error {
	for _, name := range append(append([]string(nil), s.Apply...), s.Remove...) {
		if _, ok := c.files[name]; !ok {
			return fmt.Errorf("there is no file %s", name)
		}
	}
	if err := s.checkFields(); err != nil {
		return err
	}
	at := s.At
	if at == "" {
		at = b.target()
	}
	switch {
	case s.Request != "":
		return s.prepareRequest(at, b.host(), c.requestBefore(s))
	case s.GRPC != "":
		return s.prepareGRPC(at, b.host())
	case s.TCP > 0:
		return s.prepareLine(&lineCall{address: at, port: s.TCP})
	case s.TLS.port > 0:
		sni := b.host()
		if s.SNI != nil {
			sni = *s.SNI
		}
		return s.prepareLine(&lineCall{
			address: at, port: s.TLS.port, secure: true, sni: sni, alpn: s.ALPN, clientCertificate: s.ClientCertificate,
		})
	case s.UDP > 0:
		return s.prepareDatagram(at)
	}
	return nil
}

// prepareRequest makes the call of a request; before is the request step before
// this one, nil for none.
func (s *step) prepareRequest(at, host string, before *step) error {
	if s.Expect.Status == nil && !s.Expect.Failure && s.Expect.Share == nil {
		s.Expect.Status = codes{http.StatusOK}
		if s.WebSocket != "" {
			s.Expect.Status = codes{http.StatusSwitchingProtocols}
		}
	}
	method, target, ok := strings.Cut(s.Request, " ")
	if !ok {
		return fmt.Errorf("%q is not METHOD URL", s.Request)
	}
	if strings.HasPrefix(target, "/") {
		target = "http://" + host + target
	}
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	call := &clientCall{
		method: method, url: u, address: at, headers: s.Headers, body: s.Body,
		sni: s.SNI, http2: s.HTTP2, http3: s.HTTP3, websocket: s.WebSocket, clientCertificate: s.ClientCertificate,
	}
	s.call = call
	if !s.Reuse {
		return nil
	}
	if before == nil || before.Count > 0 || s.Count > 0 {
		return errors.New("reuse goes on over the connection of the request step before, neither of them with a count")
	}
	first, ok := before.call.(*clientCall)
	if !ok || !first.http2 || before.Expect.Failure {
		return errors.New("reuse needs a request step before it that has http2 and gets an answer")
	}
	if s.At != "" || s.SNI != nil || s.ClientCertificate != "" || s.WebSocket != "" {
		return errors.New("reuse can't change at, sni or clientCertificate of a connection that exists, and has no WebSocket")
	}
	if first.session == nil {
		first.session = &session{}
	}
	call.session, call.reuse, call.http2 = first.session, true, true
	return nil
}

// requestBefore is the last request step before s.
func (c *testCase) requestBefore(s *step) *step {
	var before *step
	for i := range c.steps {
		if &c.steps[i] == s {
			return before
		}
		if c.steps[i].Request != "" {
			before = &c.steps[i]
		}
	}
	return nil
}

// codes are the allowed status codes of an answer.
type codes []int

// UnmarshalJSON reads one code or a list of alternatives.
func (c *codes) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return yaml.Unmarshal(b, (*[]int)(c))
	}
	var one int
	err := yaml.Unmarshal(b, &one)
	*c = codes{one}
	return err
}

// duration is a Go duration in YAML.
type duration time.Duration

// UnmarshalJSON reads a string such as 250ms.
func (d *duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := yaml.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	*d = duration(v)
	return err
}

// values are the allowed values of a header; none means that it is absent.
type values []string

// UnmarshalJSON reads null, one value, or a list of alternatives.
func (v *values) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		*v = values{}
		return nil
	case len(b) > 0 && b[0] == '[':
		return yaml.Unmarshal(b, (*[]string)(v))
	default:
		var one string
		if err := yaml.Unmarshal(b, &one); err != nil {
			return err
		}
		*v = values{one}
		return nil
	}
}

// amount is a number of requests, exact or as a percentage of those sent.
type amount struct {
	exact   int
	percent int
	share   bool // percent is what counts
}

// UnmarshalJSON reads 3 or "50%".
func (a *amount) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if p, ok := strings.CutSuffix(text, "%"); ok {
		a.share = true
		_, err := fmt.Sscanf(p, "%d", &a.percent)
		return err
	}
	_, err := fmt.Sscanf(text, "%d", &a.exact)
	return err
}
