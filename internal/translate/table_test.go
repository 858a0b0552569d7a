package translate_test

import (
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// TestRouteTable protects which listeners share their hosts, and the names by which
// proxies know the tables: another name replaces what serves.
func TestRouteTable(t *testing.T) {
	gateway := object.Name{Namespace: "infra", Name: "gw"}
	for _, c := range []struct {
		frontend topology.Frontend
		want     string // empty for no table
	}{
		{topology.Frontend{Port: 80, Protocol: gwv1.HTTPProtocolType}, "http-80"},
		{topology.Frontend{Port: 80, Protocol: gwv1.HTTPProtocolType, Hostname: "a.example.com"}, "http-80"},
		{topology.Frontend{Port: 8080, Protocol: gwv1.HTTPProtocolType}, "http-8080"},
		{topology.Frontend{Port: 443, Protocol: gwv1.HTTPSProtocolType}, "tls-443-_"},
		{topology.Frontend{Port: 443, Protocol: gwv1.HTTPSProtocolType, Hostname: "*.example.com"}, "tls-443-_.example.com"},
		{topology.Frontend{Port: 443, Protocol: gwv1.HTTPSProtocolType, Hostname: "a.example.com"}, "tls-443-a.example.com"},
		{topology.Frontend{Port: 443, Protocol: gwv1.TLSProtocolType, Hostname: "a.example.com"}, ""},
		{topology.Frontend{Port: 53, Protocol: gwv1.TCPProtocolType}, ""},
		{topology.Frontend{Port: 53, Protocol: gwv1.UDPProtocolType}, ""},
		{topology.Frontend{Port: 80, Protocol: "example.com/spdy"}, ""},
	} {
		got, ok := translate.RouteTable(gateway, c.frontend)
		want := ir.TableKey{}
		if c.want != "" {
			want = ir.TableOf(gateway, c.want)
		}
		if got != want || ok != (c.want != "") {
			t.Errorf("%+v: table %q, %t; want %q", c.frontend, got, ok, c.want)
		}
	}
}
