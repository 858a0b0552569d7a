package ir_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

var (
	service   = object.KindOf("", "Service")
	configMap = object.KindOf("", "ConfigMap")
	bundle    = object.KindOf("certificates.k8s.io", "ClusterTrustBundle")
)

func named(kind object.Kind, namespace, name string) object.Key {
	return object.Key{Kind: kind, Name: object.Name{Namespace: namespace, Name: name}}
}

// A release that wrote other texts for the same backends would replace every cluster of
// every proxy.
func TestBackendText(t *testing.T) {
	for want, b := range map[string]ir.Backend{
		"shop/cart:80#0c89f062":       {Object: named(service, "shop", "cart"), Port: 80, PortName: "http", Protocol: ir.HTTP1},
		"default/a:8080/tcp#e1cceb62": {Object: named(service, "default", "a"), Port: 8080, Use: ir.UseTCP, Protocol: ir.TCP},
		"udp-53":                      ir.Pool(53).Backend(),
		"anything":                    ir.NamedBackend("anything").Backend(),
	} {
		if got := b.Key().String(); got != want {
			t.Errorf("%+v is %q, want %q", b, got, want)
		}
	}
}

// All that makes a cluster another one makes another key and another text, and nothing
// else does.
func TestBackendKey(t *testing.T) {
	authority := ir.Authorities(named(configMap, "a", "ca"))
	tls := ir.BackendTLS{ServerName: "x.test", Names: ir.ListOf(ir.CertificateName{DNS: "x.test"}), Authorities: authority}
	base := ir.Backend{Object: named(service, "a", "b"), Port: 443, PortName: "p", Protocol: ir.HTTP1, TLS: tls}
	keys, texts := map[ir.BackendKey]string{}, map[string]string{}
	for what, change := range map[string]func(*ir.Backend){
		"nothing":     func(*ir.Backend) {},
		"kind":        func(b *ir.Backend) { b.Object.Kind = object.KindOf("multicluster.x-k8s.io", "ServiceImport") },
		"name":        func(b *ir.Backend) { b.Object.Name.Name = "c" },
		"port":        func(b *ir.Backend) { b.Port = 444 },
		"use":         func(b *ir.Backend) { b.Use = ir.UseGRPC },
		"port name":   func(b *ir.Backend) { b.PortName = "q" },
		"protocol":    func(b *ir.Backend) { b.Protocol = ir.H2C },
		"DNS":         func(b *ir.Backend) { b.DNS = "b.test" },
		"target port": func(b *ir.Backend) { b.TargetPort = 1 },
		"outside":     func(b *ir.Backend) { b.Outside = true },
		"retries":     func(b *ir.Backend) { b.Retry = ir.RetryBudget{Percent: 20, Interval: 10 * time.Second} },
		"no TLS":      func(b *ir.Backend) { b.TLS = ir.BackendTLS{} },
		"server name": func(b *ir.Backend) { b.TLS.ServerName = "y.test" },
		"names":       func(b *ir.Backend) { b.TLS.Names = ir.ListOf(ir.CertificateName{URI: "x.test"}) },
		"authorities": func(b *ir.Backend) { b.TLS.Authorities = ir.Authorities(named(configMap, "a", "other")) },
	} {
		b := base
		change(&b)
		k := b.Key()
		if other, ok := keys[k]; ok {
			t.Errorf("%s and %s: the same key", what, other)
		}
		if other, ok := texts[k.String()]; ok {
			t.Errorf("%s and %s: the same text %s", what, other, k)
		}
		keys[k], texts[k.String()] = what, what
		if k.Backend() != b || k != b.Key() {
			t.Errorf("%s: %+v has come back as %+v", what, b, k.Backend())
		}
		if clear := k.InClear(); !clear.Backend().TLS.IsZero() || clear.InClear() != clear {
			t.Errorf("%s: in clear it is %+v", what, clear.Backend())
		}
	}
	own := base
	own.TLS.ClientCertificate = ir.Certificate(object.Name{Namespace: "a", Name: "client"})
	own.Private = "10.0.0.0/8"
	if own.Key() != base.Key() {
		t.Error("a client certificate or a range of addresses makes another backend")
	}
	if (ir.BackendKey{}).InClear() != (ir.BackendKey{}) || !ir.NamedBackend("").IsZero() {
		t.Error("no backend is one")
	}
}

// Golden files are read back by tests: what is read has the name that was written.
func TestBackendJSON(t *testing.T) {
	b := ir.Backend{
		Object: named(service, "a", "b"), Port: 80, PortName: "p", Protocol: ir.HTTP1, DNS: "b.test", TargetPort: 8080,
		Retry: ir.RetryBudget{Percent: 20},
		TLS: ir.BackendTLS{
			ServerName: "x.test", Names: ir.ListOf(ir.CertificateName{DNS: "x.test"}, ir.CertificateName{URI: "spiffe://x"}),
			Authorities: ir.Authorities(named(configMap, "a", "ca")),
		},
	}
	text, err := json.Marshal(b)
	const want = `{"name":"a/b:80+tls.d8edb8dd#9edad5c7","service":{"namespace":"a","name":"b"},"port":8080,"portName":"p",` +
		`"protocol":"http/1.1","dns":"b.test","tls":{"serverName":"x.test","names":[{"dns":"x.test"},{"uri":"spiffe://x"}],` +
		`"authorities":"ca:ConfigMap/a/ca"},"retry":{"percent":20,"interval":0,"floor":0}}`
	if err != nil || string(text) != want {
		t.Errorf("JSON (%v):\n%s, want\n%s", err, text, want)
	}
	var back ir.Backend
	if err := json.Unmarshal(text, &back); err != nil || back.Key().String() != b.Key().String() || back.TLS.Names != b.TLS.Names {
		t.Errorf("read back (%v): %+v", err, back)
	}
}

// The key of authorities is the same for all that trust the same objects, leads back to
// them, and is no certificate's.
func TestSecretKey(t *testing.T) {
	system, config := named(bundle, "", "example.com:foo:v1"), named(configMap, "a", "x.y")
	k := ir.Authorities(config, system, config)
	if k != ir.Authorities(system, config) {
		t.Error("the order makes another key")
	}
	if got := k.Authorities(); !slices.Equal(got, []object.Key{system, config}) || !k.Certificate().IsZero() {
		t.Errorf("%s leads to %v and %v", k, got, k.Certificate())
	}
	if k.String() != "ca:ClusterTrustBundle//example.com:foo:v1,ConfigMap/a/x.y" {
		t.Errorf("authorities are %q", k)
	}
	// Proxies may not name what is longer.
	long, longer := named(configMap, "a", strings.Repeat("x", 253)), named(configMap, "a", strings.Repeat("y", 253))
	many, others := ir.Authorities(config, long, longer), ir.Authorities(system, long, longer)
	if len(many.String()) > 400 || many.String() == others.String() || !slices.Contains(many.Authorities(), longer) {
		t.Errorf("many authorities are %q and %q", many, others)
	}
	name := object.Name{Namespace: "a", Name: "x.y"}
	if c := ir.Certificate(name); c.String() != "a/x.y" || c.Certificate() != name || c.Authorities() != nil || c == k {
		t.Errorf("the certificate is %q of %v", c, c.Certificate())
	}
	if !ir.Certificate(object.Name{}).IsZero() || !ir.NamedSecret("").IsZero() {
		t.Error("no secret is one")
	}
	for _, k := range []ir.SecretKey{k, ir.Certificate(name)} {
		text, err := k.MarshalText()
		var back ir.SecretKey
		if err != nil || back.UnmarshalText(text) != nil || back.String() != k.String() || strings.Contains(back.Certificate().String(), "x") {
			t.Errorf("%s has been read as more than its name: %v", k, back.Certificate())
		}
	}
}

// Lists compare by what is in them.
func TestList(t *testing.T) {
	a, b := ir.ListOf("x", "y"), ir.ListOf("y", "x")
	if a == b || a != ir.ListOf("x", "y") || ir.ListOf[string]() != (ir.List[string]{}) {
		t.Error("lists of other values are the same, or of the same others")
	}
	if got := slices.Collect(a.All()); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("the list has %q", got)
	}
	text, err := json.Marshal(a)
	var back ir.List[string]
	if err != nil || string(text) != `["x","y"]` || json.Unmarshal(text, &back) != nil || back != a {
		t.Errorf("%s (%v) has come back as %v", text, err, back.Slice())
	}
}
