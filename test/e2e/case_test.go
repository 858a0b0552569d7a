//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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

// step is one entry of requests.yaml.
type step struct {
	// A change of the watched files.
	Apply  []string `json:"apply"`
	Remove []string `json:"remove"`

	// A request.
	Request   string            `json:"request"`
	Headers   map[string]string `json:"headers"`
	Body      string            `json:"body"`
	At        string            `json:"at"`
	SNI       *string           `json:"sni"`
	HTTP2     bool              `json:"http2"`
	WebSocket string            `json:"websocket"`
	Count     int               `json:"count"`
	Expect    *expectation      `json:"expect"`

	// A look at the status of an object.
	Conditions string      `json:"conditions"`
	Of         string      `json:"of"`
	Are        []string    `json:"are"`
	Attached   *int        `json:"attached"`
	Kinds      *[]string   `json:"kinds"`
	Addresses  *[]string   `json:"addresses"`
	Listeners  *[]string   `json:"listeners"`
	Parents    *int        `json:"parents"`
	request    *clientCall `json:"-"`
}

// expectation is what a request shall bring about.
type expectation struct {
	Status      codes             `json:"status"`
	Backend     string            `json:"backend"`
	Method      string            `json:"method"`
	Host        string            `json:"host"`
	Path        string            `json:"path"`
	Query       *string           `json:"query"`
	Proto       string            `json:"proto"`
	Body        string            `json:"body"`
	Seen        map[string]values `json:"seen"`
	Headers     map[string]values `json:"headers"`
	Redirect    *redirect         `json:"redirect"`
	Certificate string            `json:"certificate"`
	Within      duration          `json:"within"`
	AtLeast     duration          `json:"atLeast"`
	Failure     bool              `json:"failure"`
	Arrived     map[string]amount `json:"arrived"`
	Share       map[string]int    `json:"share"`
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
	if e := c.steps[0].Expect; e != nil && slices.Contains(e.Status, http.StatusNotFound) {
		return nil, fmt.Errorf("%s: the first step expects 404, which is also the answer before anything is configured", path)
	}
	return c, nil
}

// title names a step in the test's output.
func (s *step) title() string {
	switch {
	case s.Request != "":
		return s.Request
	case s.Conditions != "":
		return "conditions of " + strings.TrimSpace(s.Conditions+" "+s.Of)
	case len(s.Apply) > 0:
		return "apply " + strings.Join(s.Apply, " ")
	default:
		return "remove " + strings.Join(s.Remove, " ")
	}
}

// prepare checks a step and fills in what it leaves out.
func (s *step) prepare(c *testCase, b *bindings) error {
	for _, name := range append(append([]string(nil), s.Apply...), s.Remove...) {
		if _, ok := c.files[name]; !ok {
			return fmt.Errorf("there is no file %s", name)
		}
	}
	kinds := 0
	for _, is := range []bool{s.Request != "", s.Conditions != "", len(s.Apply)+len(s.Remove) > 0} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		return errors.New("a step is either a request, or conditions, or apply and remove")
	}
	if s.Request == "" {
		return nil
	}
	if s.Expect == nil {
		return errors.New("a request needs an expectation")
	}
	if s.Count > 0 && s.Expect.Share == nil && s.Expect.Arrived == nil {
		return errors.New("count needs a share or arrived")
	}
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
		target = "http://" + b.host() + target
	}
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	at := s.At
	if at == "" {
		at = b.target()
	}
	s.request = &clientCall{
		method: method, url: u, address: at, headers: s.Headers, body: s.Body,
		sni: s.SNI, http2: s.HTTP2, websocket: s.WebSocket,
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
