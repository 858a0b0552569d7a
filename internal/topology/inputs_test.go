package topology

import (
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// TestApply protects the way from a batch into the tables and out of them again,
// for every kind, and that kinds without a table do no harm.
func TestApply(t *testing.T) {
	w := newWorld(Options{})
	objects := decode(t, `
kind: GatewayClass
metadata: {name: c}
---
kind: Gateway
metadata: {namespace: default, name: o}
---
kind: HTTPRoute
metadata: {namespace: default, name: o}
---
kind: ReferenceGrant
metadata: {namespace: default, name: o}
---
kind: Service
metadata: {namespace: default, name: o}
---
kind: Secret
metadata: {namespace: default, name: o}
---
kind: ConfigMap
metadata: {namespace: default, name: o}
---
kind: Namespace
metadata: {name: c}
---
kind: EndpointSlice
metadata: {namespace: default, name: o}
addressType: IPv4
---
kind: TLSRoute
metadata: {namespace: default, name: o}`)
	w.set(t, objects...)
	inputs := []string{
		"gatewayclasses", "gateways", "httproutes", "referencegrants", "services",
		"secrets", "configmaps", "namespaces", "endpointslices",
	}
	check := func(want int) {
		t.Helper()
		for _, s := range w.engine.Stats() {
			if slices.Contains(inputs, s.Table) && s.Entries != want {
				t.Errorf("%s has %d entries, want %d", s.Table, s.Entries, want)
			}
		}
	}
	check(1)

	gone := source.Batch{}
	for _, o := range objects {
		k, ok := w.in.KeyOf(o)
		if !ok {
			t.Fatalf("%T has no table", o)
		}
		gone.Deleted = append(gone.Deleted, k)
	}
	w.apply(t, gone)
	check(0)
	w.apply(t, gone) // what is not there can't be missed
}

// TestSlicesByBackend protects the short path of endpoints.
func TestSlicesByBackend(t *testing.T) {
	w := newWorld(Options{})
	w.set(t, decode(t, `
kind: EndpointSlice
metadata: {namespace: default, name: b, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
---
kind: EndpointSlice
metadata: {namespace: default, name: a, labels: {kubernetes.io/service-name: web}}
addressType: IPv6
---
kind: EndpointSlice
metadata: {namespace: default, name: other, labels: {kubernetes.io/service-name: other}}
addressType: IPv4
---
kind: EndpointSlice
metadata: {namespace: default, name: nobodys}
addressType: IPv4`)...)
	w.engine.View(func(c *flow.Ctx) {
		var got []string
		for k := range flow.Select(c, w.in.SlicesByBackend, object.Key{Kind: kind.Service, Name: object.Name{Namespace: "default", Name: "web"}}).All() {
			got = append(got, k.Name)
		}
		if !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("slices of web: %q", got)
		}
	})
}

// TestCertificatesAreNotPrinted protects keys from dumps of tables.
func TestCertificatesAreNotPrinted(t *testing.T) {
	p := makePair(t, "ecdsa")
	w := newWorld(settings{ImplicitClass: "gatehouse"}.options())
	w.set(t, decode(t, fleet)...)
	w.engine.View(func(c *flow.Ctx) {
		cert, ok := flow.Get(c, w.graph.Certificates, object.Name{Namespace: "default", Name: "cert"})
		if !ok || cert.Key.Reveal() != string(p.key) || cert.Chain != string(p.crt) {
			t.Fatal("the pair is not that of the Secret")
		}
		if text := cert.Key.String(); text != "[redacted]" {
			t.Errorf("the key prints as %q", text)
		}
	})
}
