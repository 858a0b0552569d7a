package xds

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// benchSession is a session without a stream, brought up to n clusters with their
// endpoints and a table of n hosts.
func benchSession(b *testing.B, n int) (*Server, *session, *envoy.Resource) {
	b.Helper()
	server := New(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), OnState: func(object.Name, State) {}})
	b.Cleanup(server.Stop)
	u := Update{Gateway: gw}
	var names, domains []string
	for i := range n {
		name := fmt.Sprintf("default/service-%d:80", i)
		names = append(names, name)
		domains = append(domains, fmt.Sprintf("host-%05d.example.com:", i)+fmt.Sprintf("%060d", i))
		u.Set = append(u.Set, cluster(name, "1"), ends(name, "1"))
	}
	routes := table("t", domains...)
	u.Set = append(u.Set, listener("l", "1"), routes)
	server.Apply([]Update{u})
	s := newSession(server.enter(gw, ""), 1, time.Now())
	s.gateway.attach(s, time.Now())
	b.Cleanup(s.close)
	for _, req := range []*discoveryv3.DeltaDiscoveryRequest{
		{TypeUrl: envoy.Clusters.URL()},
		{TypeUrl: envoy.Endpoints.URL(), ResourceNamesSubscribe: names},
		{TypeUrl: envoy.Listeners.URL()},
		{TypeUrl: envoy.Routes.URL(), ResourceNamesSubscribe: []string{"t"}},
	} {
		s.receive(req, time.Now())
		exchange(b, s)
	}
	return server, s, routes
}

// exchange sends what is to be sent, into nothing, and acknowledges it.
func exchange(b *testing.B, s *session) (sent int) {
	b.Helper()
	for {
		plan := s.plan(time.Now())
		if len(plan) == 0 {
			return sent
		}
		for _, f := range plan {
			sent += s.gateway.server.response(s.gateway, f).pieces.Len()
			s.receive(&discoveryv3.DeltaDiscoveryRequest{
				TypeUrl: f.typ.URL(), ResponseNonce: strconv.FormatUint(f.nonce, 10),
			}, time.Now())
		}
	}
}

// What one change costs, from the commit to the acknowledgement, must not depend
// on how much there is; the bytes of a table do.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{1000, 5000, 20000} {
		b.Run(fmt.Sprintf("endpoints/%d", n), func(b *testing.B) {
			server, s, _ := benchSession(b, n)
			name := fmt.Sprintf("default/service-%d:80", n/2)
			b.ReportAllocs()
			sent := 0
			for i := 0; b.Loop(); i++ {
				server.Apply([]Update{{Gateway: gw, Set: []*envoy.Resource{ends(name, strconv.Itoa(i))}}})
				sent = exchange(b, s)
			}
			b.ReportMetric(float64(sent), "wire-B/op")
		})
		b.Run(fmt.Sprintf("host/%d", n), func(b *testing.B) {
			server, s, routes := benchSession(b, n)
			tables := [2]*envoy.Resource{}
			b.ReportAllocs()
			sent := 0
			for i := 0; b.Loop(); i++ {
				b.StopTimer() // putting the table together is package envoy's
				body := fmt.Appendf(nil, "host %d", i)
				parts := append([]*envoy.Part{}, routes.Parts()...)
				parts[n/2] = &envoy.Part{Name: parts[n/2].Name, Hash: envoy.Sum(body), Body: body}
				tables[i%2] = routes.WithParts(parts)
				b.StartTimer()
				server.Apply([]Update{{Gateway: gw, Set: []*envoy.Resource{tables[i%2]}}})
				sent = exchange(b, s)
			}
			b.ReportMetric(float64(sent), "wire-B/op")
		})
	}
}

// A proxy that connects anew, or comes back with everything.
func BenchmarkConnect(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		benchSession(b, 5000)
	}
}
