package keyset

import (
	"net/netip"
	"strings"
	"testing"
)

// A policy leads nowhere but to public hosts, and to those that its class allows.
func TestReach(t *testing.T) {
	inside := Beyond([]Allowed{
		{Names: []string{"keycloak.auth.svc", "*.corp.example"}, Addresses: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("fd12::/16")}},
		{Names: []string{"split.corp.example"}},
	})
	for _, c := range []struct {
		reach   Reach
		host    string
		address string
		may     string // name, address, or nothing
	}{
		{Public, "id.example", "93.184.216.34", "name address"},
		{Public, "id.example", "2606:2800:220:1::1", "name address"},
		{Public, "id.example", "64:ff9b::5db8:d822", "name address"}, // NAT64 of a public one
		{Public, "id.example", "::ffff:93.184.216.34", "name address"},
		{Public, "id.example", "127.0.0.1", "name"},
		{Public, "id.example", "127.8.8.8", "name"},
		{Public, "id.example", "::1", "name"},
		{Public, "id.example", "::", "name"},
		{Public, "id.example", "0.0.0.0", "name"},
		{Public, "id.example", "0.1.2.3", "name"},
		{Public, "id.example", "169.254.169.254", "name"},
		{Public, "id.example", "fe80::1", "name"},
		{Public, "id.example", "fe80::1%eth0", "name"},
		{Public, "id.example", "fd00:ec2::254", "name"},
		{Public, "id.example", "168.63.129.16", "name"},
		{Public, "id.example", "10.0.0.1", "name"},
		{Public, "id.example", "172.16.0.1", "name"},
		{Public, "id.example", "192.168.1.1", "name"},
		{Public, "id.example", "100.64.0.1", "name"},
		{Public, "id.example", "198.18.0.1", "name"},
		{Public, "id.example", "fc00::1", "name"},
		{Public, "id.example", "fec0::1", "name"},
		{Public, "id.example", "224.0.0.1", "name"},
		{Public, "id.example", "255.255.255.255", "name"},
		{Public, "id.example", "ff02::1", "name"},
		{Public, "id.example", "::ffff:127.0.0.1", "name"},
		{Public, "id.example", "::ffff:10.0.0.1", "name"},
		{Public, "id.example", "::127.0.0.1", "name"},
		{Public, "id.example", "64:ff9b::7f00:1", "name"},
		{Public, "id.example", "64:ff9b::a9fe:a9fe", "name"},
		{Public, "id.example", "64:ff9b:1::a00:1", "name"},
		{Public, "id.example", "2002:7f00:1::1", "name"},
		{Public, "id.example", "2001:0:1::1", "name"},
		{Public, "127.0.0.1", "93.184.216.34", "address"},
		{Public, "93.184.216.34", "93.184.216.34", "address"},
		{Public, "127.1", "93.184.216.34", "address"},
		{Public, "2130706433", "93.184.216.34", "address"},
		{Public, "0x7f.1", "93.184.216.34", "address"},
		{Public, "[::1]", "93.184.216.34", "address"},
		{Public, "localhost", "93.184.216.34", "address"},
		{Public, "LOCALHOST.", "93.184.216.34", "address"},
		{Public, "kubernetes", "93.184.216.34", "address"},
		{Public, "payments.victim.svc", "93.184.216.34", "address"},
		{Public, "payments.victim.svc.cluster.local", "93.184.216.34", "address"},
		{Public, "payments.victim.svc.k8s.corp", "93.184.216.34", "address"},
		{Public, "printer.local", "93.184.216.34", "address"},
		{inside, "id.example", "93.184.216.34", "name address"},
		{inside, "id.example", "10.96.0.5", "name"},
		{inside, "keycloak.auth.svc", "10.96.0.5", "name address"},
		{inside, "keycloak.auth.svc", "10.0.0.5", "name"},
		{inside, "payments.victim.svc", "10.96.0.5", ""},
		{inside, "id.corp.example", "10.96.0.5", "name address"},
		{inside, "id.corp.example", "fd12::1", "name address"},
		{inside, "id.corp.example", "64:ff9b::a60:5", "name address"},
		{inside, "id.corp.example", "169.254.169.254", "name"},
		{inside, "id.corp.example", "127.0.0.1", "name"},
		{inside, "corp.example", "10.96.0.5", "name"},
		{inside, "evilcorp.example", "10.96.0.5", "name"},
		{Host, "localhost", "127.0.0.1", "name address"},
		{Host, "id", "10.0.0.1", "name address"},
		{Host, "169.254.169.254", "169.254.169.254", "name"},
		{Host, "id", "::ffff:169.254.169.254", "name"},
		{Host, "id", "64:ff9b::a9fe:a9fe", "name"},
		{Host, "id", "fe80::1", "name"},
		{Host, "id", "fd00:ec2::254", "name"},
	} {
		var may []string
		if _, why := c.reach.CheckURL("https://" + c.host + "/"); why == "" {
			may = append(may, "name")
		}
		if why := c.reach.CheckAddress(c.host, netip.MustParseAddr(c.address)); why == "" {
			may = append(may, "address")
		}
		if got := strings.Join(may, " "); got != c.may {
			t.Errorf("%q: %s at %s: may %q, want %q", c.reach, c.host, c.address, got, c.may)
		}
	}
	for name, want := range map[string]string{"id.example": "id.example.", "payments.victim": "payments.victim.", "keycloak.auth.svc": "keycloak.auth.svc"} {
		if got := inside.LookupName(name); got != want {
			t.Errorf("%s is looked up as %q, want %q", name, got, want)
		}
	}
}
