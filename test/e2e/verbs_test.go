//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A verb is what a step does: the fields of the step and of its expectation that
// have a meaning for it. Any other is refused, since nobody would look at it.
type verb struct {
	name   string
	is     func(*step) bool
	fields string
	expect string // empty for a verb that expects nothing
}

var verbs = []verb{
	{
		"apply and remove", func(s *step) bool { return len(s.Apply)+len(s.Remove) > 0 },
		"apply remove", "",
	},
	{
		"conditions", func(s *step) bool { return s.Conditions != "" },
		"conditions of are attached kinds addresses listeners parents features", "",
	},
	{
		"request", func(s *step) bool { return s.Request != "" },
		"request at headers body sni clientCertificate http2 http3 reuse websocket count expect",
		"status backend method host path query proto body seen tls headers redirect certificate within atLeast failure arrived share",
	},
	{
		"grpc", func(s *step) bool { return s.GRPC != "" },
		"grpc at host port metadata body tls sni clientCertificate count expect",
		"code backend host path body seen tls headers certificate within atLeast failure arrived share",
	},
	{
		"tcp", func(s *step) bool { return s.TCP > 0 },
		"tcp at send finish count expect",
		"backend reply tls within atLeast failure closed share",
	},
	{
		"tls", func(s *step) bool { return s.TLS.port > 0 },
		"tls at send finish sni alpn clientCertificate count expect",
		"backend reply tls certificate within atLeast failure closed share",
	},
	{
		"udp", func(s *step) bool { return s.UDP > 0 },
		"udp at send count expect",
		"backend reply failure none share",
	},
}

// alone are the expectations beside which no other is looked at.
var alone = []string{"failure", "closed", "none", "share"}

// checkFields refuses a step that says what nobody would look at.
func (s *step) checkFields() error {
	var found []verb
	for _, v := range verbs {
		if v.is(s) {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		return errors.New("a step is one of apply and remove, conditions, request, grpc, tcp, tls and udp")
	}
	v := found[0]
	given := fieldsOf(*s)
	if name := first(given, strings.Fields(v.fields)); name != "" {
		return fmt.Errorf("%s has no field %s", v.name, name)
	}
	if v.expect == "" {
		return nil
	}
	if s.Expect == nil {
		return fmt.Errorf("%s needs an expectation", v.name)
	}
	expected := fieldsOf(*s.Expect)
	if name := first(expected, strings.Fields(v.expect)); name != "" {
		return fmt.Errorf("%s has no expectation %s", v.name, name)
	}
	for _, name := range alone {
		if slices.Contains(expected, name) && len(expected) > 1 {
			return fmt.Errorf("%s stands alone, not with %s", name, strings.Join(expected, ", "))
		}
	}
	if s.Count > 0 && s.Expect.Share == nil && s.Expect.Arrived == nil {
		return errors.New("count needs a share or arrived")
	}
	if s.Expect.Share != nil && s.Count == 0 {
		return errors.New("a share needs a count")
	}
	return nil
}

// first is a name that is not among the allowed ones; empty when all are.
func first(names, allowed []string) string {
	for _, name := range names {
		if !slices.Contains(allowed, name) {
			return name
		}
	}
	return ""
}

// fieldsOf names the fields of a struct that are set, as YAML calls them.
func fieldsOf(of any) []string {
	var names []string
	value := reflect.ValueOf(of)
	for i := range value.NumField() {
		if name := value.Type().Field(i).Tag.Get("json"); name != "" && !value.Field(i).IsZero() {
			names = append(names, name)
		}
	}
	return names
}

// vacuous names what is expected that is also so before anything is configured.
func (e *expectation) vacuous() string {
	switch {
	case e == nil:
		return ""
	case slices.Contains(e.Status, http.StatusNotFound):
		return "404"
	case strings.EqualFold(e.Code, "UNIMPLEMENTED"):
		return e.Code
	case e.Failure:
		return "failure"
	default:
		return ""
	}
}

// tlsValue is a port to speak TLS with, or whether a gRPC call is to do so.
type tlsValue struct {
	port int
	on   bool
}

// UnmarshalJSON reads a port or true.
func (v *tlsValue) UnmarshalJSON(b []byte) error {
	var err error
	if v.port, err = strconv.Atoi(string(b)); err == nil && v.port > 0 {
		return nil
	}
	if v.on = string(b) == "true"; !v.on {
		return fmt.Errorf("tls: %s is neither a port nor true", b)
	}
	v.port = 0
	return nil
}
