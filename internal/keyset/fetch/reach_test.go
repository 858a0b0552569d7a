package fetch

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/keyset"
)

// names is a resolver.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) (out []netip.Addr, err error) {
	for _, text := range n[host] {
		out = append(out, netip.MustParseAddr(text))
	}
	if len(out) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return out, nil
}

// dialed has a fetcher connect to a server whatever the address is, and notes the addresses.
func dialed(s *server, addresses *sync.Map) func(*Fetcher) {
	return func(f *Fetcher) {
		f.pace.whole, f.pace.address = time.Minute, time.Minute // a busy machine is no silent server
		f.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			addresses.Store(address, true)
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		}
	}
}

// By the policies of a cluster nothing is connected to but public hosts and those that a class
// allows, whatever names, redirects and configurations say.
func TestReachIsKept(t *testing.T) {
	inside := keyset.Beyond([]keyset.Allowed{{Names: []string{"*.corp.example.com", "in.auth.svc"}, Addresses: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}})
	resolver := names{
		"example.com.": {"93.184.216.34"}, "loop.example.com.": {"127.0.0.1", "::1"}, "mapped.example.com.": {"::ffff:127.0.0.1"},
		"nat64.example.com.": {"64:ff9b::a9fe:a9fe"}, "meta.example.com.": {"169.254.169.254"}, "pod.example.com.": {"10.96.0.5"},
		"id.corp.example.com.": {"10.96.0.5"}, "other.corp.example.com.": {"10.0.0.1"}, "in.auth.svc": {"10.96.0.6"},
		"api.example.com.": {"203.0.113.9"}, "api.internal": {"203.0.113.9"}, "api6.example.com.": {"64:ff9b::cb00:7109"},
		"mixed.example.com.": {"127.0.0.1", "93.184.216.34"}, "id.victim": {"10.96.0.7"},
	}
	for name, c := range map[string]struct {
		reach   keyset.Reach
		uri     string
		answer  string // of https://example.com/: a redirect
		problem string
		dials   string // beside that of example.com
	}{
		"a public host":                {uri: "https://example.com/keys"},
		"another address of a name":    {uri: "https://mixed.example.com/keys", dials: "93.184.216.34:443"},
		"loopback":                     {uri: "https://loop.example.com/", problem: `"loop.example.com" resolves to an address where no key sets are fetched from`},
		"loopback in IPv6":             {uri: "https://mapped.example.com/", problem: "resolves to an address where no key sets are fetched from"},
		"a metadata service":           {uri: "https://meta.example.com/", problem: "resolves to an address where no key sets are fetched from"},
		"a metadata service by NAT64":  {uri: "https://nat64.example.com/", problem: "resolves to an address where no key sets are fetched from"},
		"a pod":                        {uri: "https://pod.example.com/", problem: "a private address, which the GatewayClass doesn't allow"},
		"a Service":                    {uri: "https://payments.victim.svc/", problem: "names in .svc are of the cluster"},
		"a Service by a short name":    {uri: "https://id.victim/", problem: "there is no such host"},
		"a host of one label":          {uri: "https://kubernetes/", problem: "it has no dot"},
		"an address":                   {uri: "https://10.96.0.1/", problem: "it is an IP address"},
		"the API server":               {uri: "https://api.example.com/", problem: "it is the API server"},
		"the API server by NAT64":      {uri: "https://api6.example.com/", problem: "it is the API server"},
		"a redirect to loopback":       {uri: "https://example.com/", answer: "https://127.0.0.1/", problem: "it is an IP address"},
		"a redirect to a metadata one": {uri: "https://example.com/", answer: "https://169.254.169.254/latest", problem: "it is an IP address"},
		"a redirect to a name of it":   {uri: "https://example.com/", answer: "https://meta.example.com/latest", problem: "resolves to an address where no key sets are fetched from"},
		"a redirect to a Service":      {uri: "https://example.com/", answer: "https://a.b.svc.cluster.local/", problem: "names in .local are of the cluster"},
		"an allowed name":              {reach: inside, uri: "https://id.corp.example.com/keys", dials: "10.96.0.5:443"},
		"an allowed Service":           {reach: inside, uri: "https://in.auth.svc/keys", problem: "its certificate is for other hosts", dials: "10.96.0.6:443"},
		"a name at another address":    {reach: inside, uri: "https://other.corp.example.com/", problem: "resolves to a private address"},
		"another name at its address":  {reach: inside, uri: "https://pod.example.com/", problem: "resolves to a private address"},
	} {
		t.Run(name, func(t *testing.T) {
			set := jwks(t, "good")
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if c.answer != "" {
					http.Redirect(w, r, c.answer, http.StatusFound)
					return
				}
				says(set)(w, r)
			})
			roots := s.roots()
			var addresses sync.Map
			f := run(t, Options{Roots: roots, Resolver: resolver, Refused: []string{"api.internal", "nonesuch"}}, dialed(s, &addresses))
			f.Want([]keyset.Key{{Location: keyset.Location{URI: c.uri}, Reach: c.reach}})
			a := f.await("an answer", func(keyset.Answer) bool { return true })
			for _, ip := range []string{"127.0.0.1", "::1", "169.254", "10.96.", "10.0.0.1"} {
				if strings.Contains(a.Problem, ip) && !strings.Contains(c.uri+c.answer, ip) {
					t.Errorf("an address is told: %s", a.Problem)
				}
			}
			if (c.problem == "") != (a.Keys != "") && !strings.Contains(a.Problem, "for other hosts") || !strings.Contains(a.Problem, c.problem) {
				t.Errorf("%+v, want %q", a, c.problem)
			}
			for address := range addresses.Range {
				if address != c.dials && address != "93.184.216.34:443" {
					t.Errorf("%v was connected to", address)
				}
			}
			if _, ok := addresses.Load(c.dials); c.dials != "" && !ok {
				t.Errorf("%s was not connected to", c.dials)
			}
		})
	}
}

// rebinding is a resolver of an attacker: each answer is another one.
type rebinding struct{ asked atomic.Int64 }

func (r *rebinding) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	if r.asked.Add(1) == 1 {
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// The address that is connected to is the one that was checked.
func TestRebinding(t *testing.T) {
	s := serve(t, says(jwks(t, "good")))
	var addresses sync.Map
	f := run(t, Options{Roots: s.roots(), Resolver: &rebinding{}}, dialed(s, &addresses))
	f.Want([]keyset.Key{{Location: keyset.Location{URI: "https://example.com/"}}})
	f.awaitKey("good")
	f.awaitProblem("resolves to an address where no key sets are fetched from")
	for address := range addresses.Range {
		if address != "93.184.216.34:443" {
			t.Errorf("%v was connected to", address)
		}
	}
}
