package echo

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

const (
	maxDelay   = time.Minute
	maxHeaders = 16
	maxKey     = 128
)

// Script is what a request asks the backend to do. Each field is a query
// parameter of that name, or a header with the prefix "Echo-" (metadata of gRPC);
// the query wins.
//
//	status=503   answer with this status (200 to 599)
//	delay=800ms  wait before answering (at most a minute)
//	abort=true   cut the connection instead of answering
//	code=ABORTED answer a gRPC call with this status code, a name or a number
//	times=2      status, code, delay, abort hold for the first 2 requests of the key
//	key=abc      count this request under a key
//	header=N:V   add a response header; may be repeated, up to 16 times
type Script struct {
	Status  int
	Code    codes.Code
	Delay   time.Duration
	Abort   bool
	Times   int
	Key     string
	Headers []Header
}

// Header is one response header.
type Header struct{ Name, Value string }

// applies reports whether the faults hold for the n-th request of the key.
func (s Script) applies(attempt int) bool {
	return s.Times == 0 || attempt <= s.Times
}

func parseScript(r *http.Request) (Script, error) {
	var s Script
	// A malformed query may be what somebody tests, so it is no error: the pairs that
	// do parse are used.
	query, _ := url.ParseQuery(r.URL.RawQuery)
	values := func(name string) []string {
		if v, ok := query[name]; ok {
			return v
		}
		return r.Header.Values("Echo-" + name)
	}
	value := func(name string) string {
		if v := values(name); len(v) > 0 {
			return v[0]
		}
		return ""
	}
	var err error
	if v := value("status"); v != "" {
		if s.Status, err = strconv.Atoi(v); err != nil || s.Status < 200 || s.Status > 599 {
			return s, fmt.Errorf("status %q is not a number from 200 to 599", v)
		}
	}
	if v := value("code"); v != "" {
		if s.Code, err = parseCode(v); err != nil {
			return s, err
		}
	}
	if v := value("delay"); v != "" {
		if s.Delay, err = time.ParseDuration(v); err != nil || s.Delay < 0 || s.Delay > maxDelay {
			return s, fmt.Errorf("delay %q is not a duration from 0s to %s", v, maxDelay)
		}
	}
	if v := value("abort"); v != "" {
		if s.Abort, err = strconv.ParseBool(v); err != nil {
			return s, fmt.Errorf("abort %q is neither true nor false", v)
		}
	}
	if s.Key = value("key"); len(s.Key) > maxKey {
		return s, fmt.Errorf("key is longer than %d bytes", maxKey)
	}
	if v := value("times"); v != "" {
		if s.Times, err = strconv.Atoi(v); err != nil || s.Times < 1 {
			return s, fmt.Errorf("times %q is not a positive number", v)
		}
		if s.Key == "" {
			return s, fmt.Errorf("times needs a key to count by")
		}
	}
	lines := values("header")
	if len(lines) > maxHeaders {
		return s, fmt.Errorf("more than %d headers asked for", maxHeaders)
	}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return s, fmt.Errorf("header %q is not name:value", line)
		}
		s.Headers = append(s.Headers, Header{Name: name, Value: strings.TrimSpace(value)})
	}
	return s, nil
}
