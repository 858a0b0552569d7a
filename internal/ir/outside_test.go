package ir_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// TestLocalName protects a cluster from names that lead into it or to the proxy's host.
func TestLocalName(t *testing.T) {
	for name, local := range map[string]bool{
		"api.example.com": false, "api.example.com.": false, "svc.example.com": false, "local.example": false, "1.example": false, "xn--p1ai.example": false,
		"localhost": true, "payments": true, "payments.": true, "a.localhost": true, "printer.LOCAL": true, "payments.victim.svc": true,
		"payments.victim.svc.cluster.local": true, "payments.victim.svc.corp.example": true,
		"169.254.169.254": true, "127.1": true, "2130706433": true, "0x7f000001": true, "1.0x7f": true, "::1": true, "fe80::1": true, "": true,
	} {
		if why := ir.LocalName(name); (why != "") != local {
			t.Errorf("%q: %q", name, why)
		}
	}
}
