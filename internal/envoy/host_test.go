package envoy

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

func simpleHost(i int) *ir.Host {
	name := fmt.Sprintf("app-%05d", i)
	return &ir.Host{
		Domain: name + ".bench.example",
		Rules: []*ir.Rule{{
			Source:   ir.Source{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "bench", Name: name}},
			Match:    ir.Match{Path: ir.PathMatch{Kind: ir.PathPrefix, Value: "/"}},
			Backends: []ir.WeightedBackend{{Backend: ir.NamedBackend("bench/" + name + ":8080|0123456789abcdef"), Weight: 1}},
		}},
	}
}

func simpleBackend() *ir.Backend {
	return &ir.Backend{
		Named: "bench/app-00001:8080|0123456789abcdef", Protocol: ir.HTTP1, Port: 8080,
	}
}

// A table put together from its hosts' bytes is the table.
func TestRouteTable(t *testing.T) {
	var parts []*Part
	for i := range 3 {
		p, errs := HostPart(simpleHost(i))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		again, _ := HostPart(simpleHost(i))
		if !bytes.Equal(p.Body, again.Body) || p.Hash != again.Hash {
			t.Errorf("%s: other bytes for the same host", p.Name)
		}
		parts = append(parts, p)
	}
	r := RouteTable("http-80", parts)
	c := decode(t, r, &routev3.RouteConfiguration{})
	if c.Name != "http-80" || len(c.VirtualHosts) != 3 || c.VirtualHosts[2].Domains[0] != "app-00002.bench.example" {
		t.Errorf("%v", c)
	}
	if !c.IgnorePortInHostMatching {
		t.Error("ports of hosts are not ignored")
	}
	if err := c.ValidateAll(); err != nil {
		t.Error(err)
	}
	if !RouteTable("http-80", nil).Equal(RouteTable("http-80", nil)) || r.Equal(RouteTable("http-80", parts[:2])) {
		t.Error("versions do not follow the content")
	}
	if empty := decode(t, EmptyRoutes("http-80"), &routev3.RouteConfiguration{}); empty.Name != "http-80" || len(empty.VirtualHosts) != 0 {
		t.Errorf("%v", empty)
	}
}

// Values that no Kubernetes object can hold must not take other rules down.
func TestHostPartOutOfRange(t *testing.T) {
	good := simpleHost(0).Rules[0]
	for name, change := range map[string]func(*ir.Rule){
		"UTF-8 in a path":    func(r *ir.Rule) { r.Match.Path = ir.PathMatch{Kind: ir.PathExact, Value: "/\xff"} },
		"UTF-8 in a cluster": func(r *ir.Rule) { r.Backends = []ir.WeightedBackend{{Backend: ir.NamedBackend("a/\xff"), Weight: 1}} },
		"UTF-8 in a name":    func(r *ir.Rule) { r.Source.Title = "\xff" },
		"UTF-8 in a header": func(r *ir.Rule) {
			r.Filters.RequestHeaders = &ir.HeaderChanges{Set: []ir.Header{{Name: "x", Value: "\xff"}}}
		},
		"kind of path": func(r *ir.Rule) { r.Match.Path.Kind = "Other" },
		"status":       func(r *ir.Rule) { r.Status = 99 },
		"weights": func(r *ir.Rule) {
			r.Backends = []ir.WeightedBackend{{Backend: ir.NamedBackend("a/b"), Weight: 1 << 31}, {Backend: ir.NamedBackend("a/c"), Weight: 1 << 31}}
		},
		"retry code":  func(r *ir.Rule) { r.Retry = &ir.Retry{Attempts: 1, StatusCodes: []uint32{200}} },
		"CORS origin": func(r *ir.Rule) { r.Filters.CORS = &ir.CORS{AllowOrigins: []string{"https://a\n"}} },
		"prefix":      func(r *ir.Rule) { r.Match.Path.Value = "/a?b" },
		"host":        func(r *ir.Rule) { r.Filters.Rewrite = &ir.Rewrite{Hostname: "a b"} },
		"path":        func(r *ir.Rule) { r.Filters.Rewrite = &ir.Rewrite{Path: &ir.PathRewrite{Full: true, Value: "/a b"}} },
		"query name":  func(r *ir.Rule) { r.Match.Query = []ir.ValueMatch{{Value: "x"}} },
		"header name": func(r *ir.Rule) { r.Match.Headers = []ir.ValueMatch{{Name: ":path", Value: "x"}} },
		"redirect scheme": func(r *ir.Rule) {
			r.Redirect = &ir.Redirect{Status: 302, Scheme: "ftp"}
		},
	} {
		bad := simpleHost(0).Rules[0]
		bad.Source.Rule = 1
		change(bad)
		p, errs := HostPart(&ir.Host{Domain: "a.example", Rules: []*ir.Rule{bad, good}})
		if len(errs) != 1 || errs[0].Source.Rule != 1 || p == nil {
			t.Errorf("%s: part %v, errors %v", name, p, errs)
			continue
		}
		c := &routev3.RouteConfiguration{}
		if err := proto.Unmarshal(p.Body, c); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		routes := c.VirtualHosts[0].Routes
		if last := routes[len(routes)-1]; last.GetRoute().GetCluster() != ClusterName(good.Backends[0].Backend) {
			t.Errorf("%s: the good rule is gone: %v", name, routes)
		}
	}
	if p, errs := HostPart(&ir.Host{Domain: "a\nb", Rules: []*ir.Rule{good, good}}); p != nil || len(errs) != 2 {
		t.Errorf("bad domain: part %v, errors %v", p, errs)
	}
}

// What is sent for each of thousands of routes stays small.
func TestSizes(t *testing.T) {
	p, _ := HostPart(simpleHost(1))
	c, err := Cluster(simpleBackend())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		what        string
		size, limit int
	}{
		{"a host with one rule", len(p.Body), 150}, // an edit sends some hundred of them
		{"a cluster", len(c.Body()), 420},
		{"endpoints of none", len(EmptyEndpoints(c.Name).Body()), 64},
	} {
		t.Logf("%s: %d bytes", s.what, s.size)
		if s.size > s.limit {
			t.Errorf("%s: %d bytes, the limit is %d", s.what, s.size, s.limit)
		}
	}
}

// What we accept, Envoy compiles.
func TestRegexAccepted(t *testing.T) {
	var rules []*ir.Rule
	for _, re := range []string{
		`/v[0-9]+/.*`, `(?<name>a)`, `(?P<name>a)`, `.{1000}`, `(?s).{1000}`, `\Q.\E`, `(?i)straße`, `日本{3}`, `[а-я]+`, `(?i)[а-я]`,
		`(?:(?:a{10}){10}){10}`, `(.{100}){10}.{800}`, `\pL+`, `(\pL|\pN){20}`, `\pN{800}`, `[\pL\pN\pP]{300}`, `\PL{30}`, `\p{Latin}`, `\p{^Common}`,
		`\p{Any}`, `\pC`, `\p{Zs}`, `(?i)\p{Lu}`, `[[:alpha:][:word:]]`, `\z`, `\A`, `\b`, `(?U)a+`, `a{,2}`, `(|a)*`, `()`, `^^$$`,
		`\x{ff}`, `\377`, `\08`, `\\x{100}`, `\W{1000}`, `[^a]{1000}`, strings.Repeat(`.{900}`, 5),
	} {
		if err := checkRegex(re); err != nil {
			t.Errorf("%q: %v", re, err)
			continue
		}
		m := prefix("/")
		m.Headers = []ir.ValueMatch{{Name: "x", Value: re, Regex: true}}
		rules = append(rules,
			&ir.Rule{Match: ir.Match{Path: ir.PathMatch{Kind: ir.PathRegex, Value: re}}, Status: 404},
			&ir.Rule{Match: m, Status: 404})
	}
	if err := plain(rulesOn("*", rules...)).validate(t); err != nil {
		t.Error(err)
	}
}

func BenchmarkHostPart(b *testing.B) {
	h := simpleHost(1)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = HostPart(h)
	}
}

func BenchmarkHostPartFilters(b *testing.B) {
	h := simpleHost(1)
	h.Rules[0].Filters = ir.Filters{
		RequestHeaders: &ir.HeaderChanges{Set: []ir.Header{{Name: "x", Value: "y"}}},
		Rewrite:        &ir.Rewrite{Path: &ir.PathRewrite{Value: "/x"}},
		CORS:           &ir.CORS{AllowOrigins: []string{"https://*.example.com"}},
	}
	h.Rules[0].Match.Path = ir.PathMatch{Kind: ir.PathRegex, Value: "/v[0-9]+/.*"}
	h.Rules[0].Filters.Rewrite.Path.Full = true
	h.Rules[0].Retry = &ir.Retry{Attempts: 3, StatusCodes: []uint32{500}}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = HostPart(h)
	}
}

func BenchmarkCluster(b *testing.B) {
	backend := simpleBackend()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Cluster(backend)
	}
}

func BenchmarkLoadAssignment(b *testing.B) {
	e := &ir.Endpoints{Backend: simpleBackend().Key(), Endpoints: []ir.Endpoint{{Address: "10.0.0.1", Port: 8080}, {Address: "10.0.0.2", Port: 8080}}}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = LoadAssignment(ClusterName(e.Backend), e.Endpoints)
	}
}

func BenchmarkRouteTable(b *testing.B) {
	var parts []*Part
	for i := range 5000 {
		p, _ := HostPart(simpleHost(i))
		parts = append(parts, p)
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = RouteTable("http-80", parts)
	}
}
