package translate

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// A backend over TLS is another than the same one in clear, and another than one that
// trusts others; its name leads to its port, and to the one in clear.
func TestBackendTLSName(t *testing.T) {
	port := &topology.ServicePort{Service: object.Name{Namespace: "a", Name: "b"}, Port: 443, Use: topology.UseTCP}
	clear := BackendName(port)
	names := map[string]bool{clear: true}
	authority := object.Key{Kind: kind.ConfigMap, Name: object.Name{Namespace: "a", Name: "ca"}}
	for _, tls := range []*topology.BackendTLS{
		{Hostname: "x.test", Authorities: []object.Key{authority}},
		{Hostname: "y.test", Authorities: []object.Key{authority}},
		{Hostname: "x.test", Authorities: []object.Key{topology.SystemAuthorities}},
	} {
		secure := *port
		secure.TLS = tls
		name := BackendName(&secure)
		if names[name] {
			t.Errorf("%s is the name of two", name)
		}
		names[name] = true
		if service, number, use, ok := ParseBackendName(name); service != port.Service || number != 443 || use != topology.UseTCP || !ok {
			t.Errorf("%s leads to %s:%d/%s", name, service, number, use)
		}
		if !Encrypted(name) || Encrypted(clear) {
			t.Errorf("%s and %s pass for each other", name, clear)
		}
		if got := unencrypted([]ir.WeightedBackend{{Backend: name}, {Backend: clear}, {}}); got[0].Backend != clear || got[1].Backend != clear || got[2].Backend != "" {
			t.Errorf("%s in clear is %v", name, got)
		}
	}
}
