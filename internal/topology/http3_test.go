package topology

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// A listener of datagrams keeps its port from HTTP/3; only who asked is told.
func TestHTTP3LeavesDatagrams(t *testing.T) {
	listener := func(protocol gwv1.ProtocolType, f family, port uint16, asks bool) *draft {
		d := &draft{spec: &gwv1.Listener{}, family: f, accepted: condition.ListenerAccepted()}
		d.Key = ListenerOf(object.Name{}, object.Name{}, string(protocol))
		d.Protocol, d.Port, d.BindPort = protocol, port, port
		d.HTTP3 = protocol == gwv1.HTTPSProtocolType
		if asks {
			d.spec.TLS = &gwv1.ListenerTLSConfig{Options: map[gwv1.AnnotationKey]gwv1.AnnotationValue{http3Option: "true"}}
		}
		return d
	}
	for _, c := range []struct {
		name         string
		served       family // of the listener of datagrams
		port         uint16 // its port; HTTP/3 is on 443
		asks         bool
		http3, valid bool
	}{
		{"by default", encrypted, 443, false, false, true},
		{"asked for", encrypted, 443, true, false, false},
		{"another port", encrypted, 53, true, true, true},
		{"not served", unserved, 443, true, true, true},
	} {
		https := listener(gwv1.HTTPSProtocolType, encrypted, 443, c.asks)
		dropHTTP3AtUDP([]*draft{https, listener(gwv1.UDPProtocolType, c.served, c.port, false)})
		if valid := https.accepted.Status == metav1.ConditionTrue; https.HTTP3 != c.http3 || valid != c.valid {
			t.Errorf("%s: HTTP/3 %t, valid %t (%s)", c.name, https.HTTP3, valid, https.accepted.Message)
		}
	}
}
