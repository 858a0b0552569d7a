package ratelimit

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ratelimitcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/ratelimit/descriptor"
)

// What can't be read is an error that says what is wrong, and nothing is counted. Users'
// values are in neither the error nor the log.
func TestMalformed(t *testing.T) {
	const secret = "a-token-of-a-user"
	good := func() *ratelimitcommonv3.RateLimitDescriptor { return desc("a", "1/1h", "client", secret) }
	with := func(change func(*ratelimitcommonv3.RateLimitDescriptor)) *ratelimitv3.RateLimitRequest {
		d := good()
		change(d)
		return check(good(), d)
	}
	many := func(n int) (all []string) {
		for range n {
			all = append(all, "k", secret)
		}
		return all
	}
	for name, c := range map[string]struct {
		req  *ratelimitv3.RateLimitRequest
		want string
	}{
		"nil":                  {nil, "domain"},
		"no domain":            {&ratelimitv3.RateLimitRequest{Descriptors: check(good()).Descriptors}, "domain"},
		"another domain":       {&ratelimitv3.RateLimitRequest{Domain: "envoy", Descriptors: check(good()).Descriptors}, "domain"},
		"no descriptor":        {check(), "no descriptor"},
		"nil descriptor":       {check(nil), "descriptor 0"},
		"too many descriptors": {check(make([]*ratelimitcommonv3.RateLimitDescriptor, descriptor.MaxDescriptors+1)...), "1025 descriptors"},
		"no entry":             {check(&ratelimitcommonv3.RateLimitDescriptor{}), "first entries"},
		"nil entry":            {with(func(d *ratelimitcommonv3.RateLimitDescriptor) { d.Entries[2] = nil }), "0 bytes"},
		"no limit":             {with(func(d *ratelimitcommonv3.RateLimitDescriptor) { d.Entries = d.Entries[1:] }), "first entries"},
		"no rate":              {with(func(d *ratelimitcommonv3.RateLimitDescriptor) { d.Entries = d.Entries[:1] }), "first entries"},
		"no name":              {check(good(), desc("", "1/1h")), "descriptor 1: the name"},
		"long name":            {check(desc(strings.Repeat("n", 1025), "1/1h")), "1025 bytes"},
		"rate":                 {check(desc("a", secret)), "100/10s"},
		"no counter's key":     {check(desc("a", "1/1h", "", "v")), "0 bytes"},
		"long key":             {check(desc("a", "1/1h", strings.Repeat("k", 257), "v")), "257 bytes"},
		"long value":           {check(desc("a", "1/1h", "k", strings.Repeat("v", 257))), "257 bytes"},
		"too many entries":     {check(desc("a", "1/1h", many(19)...)), "21 entries"},
		"shadow":               {check(desc("a", "1/1h", "shadow", "yes")), "shadow"},
		"charge":               {check(desc("a", "1/1h", "charge", "false")), "charge"},
		"charge before shadow": {check(desc("a", "1/1h", "charge", "true", "shadow", "true")), "not in its place"},
		"late shadow":          {check(desc("a", "1/1h", "k", secret, "shadow", "true")), "not in its place"},
		"second rate":          {check(desc("a", "1/1h", "rate", "2/1h")), "not in its place"},
		"negative":             {with(func(d *ratelimitcommonv3.RateLimitDescriptor) { d.IsNegativeHits = true }), "is_negative_hits"},
		"override": {with(func(d *ratelimitcommonv3.RateLimitDescriptor) {
			d.Limit = &ratelimitcommonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1}
		}), "limit:"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, NewMemory())
			var log bytes.Buffer
			s.log = slog.New(slog.NewTextHandler(&log, nil))
			_, err := s.ShouldRateLimit(t.Context(), c.req)
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: want InvalidArgument with %q", err, c.want)
			}
			if text := err.Error() + log.String(); strings.Contains(text, secret) || log.Len() == 0 {
				t.Errorf("error and log: %s", text)
			}
			if n, _ := s.store.(*Memory).size(); n != 0 {
				t.Errorf("%d counts are held", n)
			}
		})
	}
}

// A flood of malformed requests is some log lines.
func TestMalformedLogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, NewMemory())
		var log bytes.Buffer
		s.log = slog.New(slog.NewTextHandler(&log, nil))
		for range 3 {
			for range 100 {
				_, _ = s.ShouldRateLimit(t.Context(), check())
			}
			time.Sleep(logInterval)
		}
		if n := strings.Count(log.String(), "\n"); n != 3 {
			t.Errorf("%d lines, not 3", n)
		}
	})
}

// The store's words are for the log: a proxy learns that it failed.
func TestStoreFails(t *testing.T) {
	var log bytes.Buffer
	s := New(Options{Gateway: gatewayName, Store: failing{}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	client := dial(t, s)
	_, err := client.ShouldRateLimit(t.Context(), check(desc("a", "1/1h")))
	if status.Code(err) != codes.Unavailable || strings.Contains(err.Error(), "192.0.2.1") {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(log.String(), "192.0.2.1") {
		t.Errorf("the log is %q", log.String())
	}
}

// headerMap is the headers of an answer.
func headerMap(r *ratelimitv3.RateLimitResponse) map[string]string {
	m := map[string]string{}
	for _, h := range r.GetResponseHeadersToAdd() {
		m[h.GetKey()] = h.GetValue()
	}
	return m
}

// A conversation is one of requests in order, a second apart.
func TestAnswers(t *testing.T) {
	type step struct {
		req     *ratelimitv3.RateLimitRequest
		refused bool
		headers string // limit remaining reset retry
	}
	all := func(n uint32, req *ratelimitv3.RateLimitRequest) *ratelimitv3.RateLimitRequest {
		req.HitsAddend = n
		return req
	}
	for name, steps := range map[string][]step{
		"one limit": {
			{check(desc("a", "2/10s")), false, "2, 2;w=10 1 10"},
			{check(desc("a", "2/10s")), false, "2, 2;w=10 0 9"},
			{check(desc("a", "2/10s")), true, "2, 2;w=10 0 8 8"},
		},
		"values are counted apart": {
			{check(desc("a", "1/10s", "client", "1")), false, "1, 1;w=10 0 10"},
			{check(desc("a", "1/10s", "client", "2")), false, "1, 1;w=10 0 10"},
			{check(desc("a", "1/10s", "client", "1")), true, "1, 1;w=10 0 8 8"},
		},
		"neither the rate nor the shadow names a count": {
			{check(desc("a", "5/1h", "k", "v")), false, "5, 5;w=3600 4 3600"},
			{check(desc("a", "5/1h", "shadow", "true", "k", "v")), false, ""},
			{check(desc("a", "3/1h", "k", "v")), false, "3, 3;w=3600 0 3598"},
			{check(desc("a", "2/1h", "k", "v")), true, "2, 2;w=3600 0 3597 3597"},
		},
		"keys and values are not run together": {
			{check(desc("a", "1/10s", "k", "vk")), false, "1, 1;w=10 0 10"},
			{check(desc("a", "1/10s", "kv", "k")), false, "1, 1;w=10 0 10"},
			{check(desc("ak", "1/10s", "v", "k")), false, "1, 1;w=10 0 10"},
		},
		"the tightest is told": {
			{check(desc("a", "9/10s"), desc("b", "5/1m")), false, "5, 5;w=60 4 60"},
			{check(desc("a", "9/10s"), desc("b", "5/1m"), desc("c", "1/1h", "shadow", "true")), false, "5, 5;w=60 3 59"},
		},
		"if any is over none is charged": {
			{check(desc("b", "1/1m")), false, "1, 1;w=60 0 60"},
			{check(desc("a", "5/10s"), desc("b", "1/1m"), desc("c", "5/10s", "shadow", "true")), true, "1, 1;w=60 0 59 59"},
			{check(desc("a", "5/10s")), false, "5, 5;w=10 4 10"},
		},
		"shadowed ones refuse nothing": {
			{check(desc("a", "1/10s", "shadow", "true")), false, ""},
			{check(desc("a", "1/10s", "shadow", "true")), false, ""},
			{check(desc("a", "1/10s")), true, "1, 1;w=10 0 8 8"},
		},
		"hits of its own win": {
			{all(3, check(times(2, desc("a", "9/10s")))), false, "9, 9;w=10 7 10"},
			{all(3, check(desc("a", "9/10s"))), false, "9, 9;w=10 4 9"},
			{all(5, check(desc("a", "9/10s"))), true, "9, 9;w=10 4 8 8"},
			{check(times(4, desc("a", "9/10s"))), false, "9, 9;w=10 0 7"},
		},
		"what is over is told, though something else has less left": {
			{check(times(8, desc("a", "10/10s"))), false, "10, 10;w=10 2 10"},
			{check(times(5, desc("a", "10/10s")), desc("b", "1/1m")), true, "10, 10;w=10 2 9 9"},
		},
		"absurd hits": {
			{check(times(1<<64-1, desc("a", "1000000000/10s"))), false, "1000000000, 1000000000;w=10 0 10"},
			{check(times(1<<64-1, desc("a", "1000000000/10s"))), true, "1000000000, 1000000000;w=10 0 9 9"},
		},
		"a charge beside a check that is refused": {
			{check(desc("a", "1/1m")), false, "1, 1;w=60 0 60"},
			{check(desc("a", "1/1m"), times(60, desc("t", "100/1h", "charge", "true"))), true, "1, 1;w=60 0 59 59"},
			{check(times(0, desc("t", "100/1h"))), false, "100, 100;w=3600 40 3599"},
		},
		"tokens": {
			{check(times(0, desc("t", "100/1h"))), false, "100, 100;w=3600 100 3600"},
			{charge(times(60, desc("t", "100/1h"))), false, ""},
			{check(times(0, desc("t", "100/1h"))), false, "100, 100;w=3600 40 3599"},
			{charge(times(60, desc("t", "100/1h"))), false, ""},
			{check(times(0, desc("t", "100/1h"))), true, "100, 100;w=3600 0 3597 3597"},
			{check(times(60, desc("t", "100/1h", "shadow", "true", "charge", "true"))), false, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, NewMemory())
				for i, step := range steps {
					r, err := s.ShouldRateLimit(t.Context(), step.req)
					if err != nil {
						t.Fatal(err)
					}
					if refused := r.GetOverallCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT; refused != step.refused {
						t.Errorf("request %d: refused is %v", i, refused)
					}
					var got []string
					h := headerMap(r)
					for _, k := range []string{headerLimit, headerRemaining, headerReset, headerRetry} {
						if v, ok := h[k]; ok {
							got = append(got, v)
							delete(h, k)
						}
					}
					if headers := strings.Join(got, " "); headers != step.headers || len(h) > 0 {
						t.Errorf("request %d: headers %q and %v, not %q", i, headers, h, step.headers)
					}
					if len(r.GetStatuses()) != len(step.req.GetDescriptors()) {
						t.Errorf("request %d: %d statuses", i, len(r.GetStatuses()))
					}
					if err := r.Validate(); err != nil {
						t.Errorf("request %d: %v", i, err)
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

func FuzzRequest(f *testing.F) {
	for _, r := range []*ratelimitv3.RateLimitRequest{
		check(desc("a", "100/10s", "k", "v"), times(0, desc("b", "1/24h"))), charge(times(7, desc("a", "5/1s", "shadow", "true"))),
	} {
		b, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	s := newServer(f, newMemory(100, 10))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &ratelimitv3.RateLimitRequest{}
		if proto.Unmarshal(b, r) != nil {
			return
		}
		answer, err := s.ShouldRateLimit(t.Context(), r)
		if err != nil && status.Code(err) != codes.InvalidArgument {
			t.Fatal(err)
		}
		if err == nil && len(answer.GetStatuses()) != len(r.GetDescriptors()) {
			t.Fatalf("%d statuses for %d descriptors", len(answer.GetStatuses()), len(r.GetDescriptors()))
		}
		var m malformed
		if _, err := readHits(r, nil); err != nil && !errors.As(err, &m) {
			t.Fatalf("%v is no malformed request", err)
		}
	})
}
