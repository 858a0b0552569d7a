package envoy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/re2"
)

// The proto rules leave out much of what Envoy refuses when it loads a
// configuration, and of what would make it send broken requests. That is
// checked here.

// checkRegex reports why RE2, as Envoy uses it, would refuse a regex.
func checkRegex(re string) error {
	if _, err := re2.Size(re); err != nil {
		return fmt.Errorf("regular expression %q: %w", re, err)
	}
	return nil
}

// checkHeaderName accepts what RFC 9110 calls a token. Envoy takes more at load
// time, and then sends requests that backends can't parse.
func checkHeaderName(name string) error {
	if name == "" {
		return errors.New("the header name is empty")
	}
	for i := range len(name) {
		if !ir.IsTokenByte(name[i]) {
			return fmt.Errorf("%q is not a valid header name: %q is not allowed in it", name, name[i])
		}
	}
	return nil
}

// checkHeaderValue accepts a field value of RFC 9110.
func checkHeaderValue(name, value string) error {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Errorf("the value of header %q has a control character (%q), which HTTP forbids", name, c)
		}
	}
	return nil
}

// checkHost accepts what may be sent as a Host header.
func checkHost(host string) error {
	for i := range len(host) {
		if c := host[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("/?#@", c) >= 0 {
			return fmt.Errorf("hostname %q: %q is not allowed in a Host header", host, c)
		}
	}
	return nil
}

// checkPath accepts what may be sent as a path.
func checkPath(path string) error {
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c >= 0x7f {
			return fmt.Errorf("path %q: %q must be percent-encoded", path, c)
		}
	}
	return nil
}
