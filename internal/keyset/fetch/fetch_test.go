package fetch

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"

	"github.com/gatehouse-dev/gatehouse/internal/keyset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// longestWait bounds every wait of these tests; none waits that long.
const longestWait = 30 * time.Second

// server is an issuer's. Its certificate is for 127.0.0.1 and example.com.
type server struct {
	*httptest.Server
	asked  atomic.Int64
	handle atomic.Pointer[http.HandlerFunc]
}

func serve(t *testing.T, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.answer(handle)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		(*s.handle.Load())(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *server) answer(handle http.HandlerFunc) { s.handle.Store(&handle) }

func (s *server) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// jwks returns a set with one key of a name.
func jwks(t *testing.T, kid string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: kid}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, text)
	}
}

// fetching is a fetcher that runs, and what it has answered.
type fetching struct {
	*Fetcher
	t       *testing.T
	answers chan keyset.Answer
	log     *buffer
	end     func()
}

// quick is a pace at which a minute takes 60 ms.
var quick = pace{whole: 5 * time.Second, address: 2 * time.Second, scale: 0.001, first: 20 * time.Millisecond, last: 50 * time.Millisecond}

func run(t *testing.T, opts Options, adjust func(*Fetcher)) *fetching {
	t.Helper()
	f := &fetching{t: t, answers: make(chan keyset.Answer, 1024), log: &buffer{}}
	opts.Log = slog.New(slog.NewTextHandler(f.log, nil))
	opts.Answer = func(ctx context.Context, _ keyset.Key, a keyset.Answer) {
		select {
		case f.answers <- a:
		case <-ctx.Done():
		}
	}
	f.Fetcher = New(opts)
	f.pace = quick
	if adjust != nil {
		adjust(f.Fetcher)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.Run(ctx)
	}()
	f.end = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(f.end)
	return f
}

// await waits for an answer, and returns it.
func (f *fetching) await(what string, is func(keyset.Answer) bool) keyset.Answer {
	f.t.Helper()
	late := time.After(longestWait)
	var last keyset.Answer
	for {
		select {
		case last = <-f.answers:
			if is(last) {
				return last
			}
		case <-late:
			f.t.Fatalf("not so: %s; the last answer is %+v", what, last)
		}
	}
}

func (f *fetching) awaitProblem(part string) keyset.Answer {
	f.t.Helper()
	return f.await(part, func(a keyset.Answer) bool { return strings.Contains(a.Problem, part) })
}

func (f *fetching) awaitKey(kid string) keyset.Answer {
	f.t.Helper()
	return f.await(kid, func(a keyset.Answer) bool { return strings.Contains(a.Keys, `"`+kid+`"`) && a.Problem == "" })
}

type buffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func uri(text string) keyset.Key {
	return keyset.Key{Location: keyset.Location{URI: text}, Reach: keyset.Host}
}

// A set that its issuer changes is replaced, keys that it takes out are gone, and who wants it
// twice fetches it once.
func TestRotation(t *testing.T) {
	s := serve(t, says(jwks(t, "old")))
	f := run(t, Options{Roots: s.roots()}, func(f *Fetcher) { f.pace.scale = 1 })
	k := uri(s.URL + "/jwks")
	known, first := f.Want([]keyset.Key{k, k})
	if len(known) > 0 || first == nil {
		t.Fatalf("known before it was fetched: %v", known)
	}
	first(t.Context())
	f.awaitKey("old")
	if known, first := f.Want([]keyset.Key{k}); len(known) > 0 || first != nil {
		t.Errorf("asked for again, it is news: %v", known)
	}
	if n := s.asked.Load(); n != 1 {
		t.Errorf("it was fetched %d times", n)
	}

	again := run(t, Options{Roots: s.roots()}, nil)
	again.Want([]keyset.Key{k})
	again.awaitKey("old")
	s.answer(says(jwks(t, "new")))
	if a := again.awaitKey("new"); strings.Contains(a.Keys, "old") {
		t.Errorf("a key that was taken out is still in force: %s", a.Keys)
	}
	if known, _ := again.Want(nil); len(known) != 1 || known[k] != nil {
		t.Errorf("no longer wanted: %v", known)
	}
}

// An issuer is asked where its keys are.
func TestDiscovery(t *testing.T) {
	set := jwks(t, "found")
	s := serve(t, nil)
	s.answer(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/realms/shop/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q}`, s.URL+"/realms/shop/", s.URL+"/moved")
		case "/moved":
			http.Redirect(w, r, "/keys", http.StatusFound)
		case "/keys":
			says(set)(w, r)
		}
	})
	f := run(t, Options{Roots: s.roots()}, nil)
	f.Want([]keyset.Key{{Location: keyset.Location{Issuer: s.URL + "/realms/shop/"}, Reach: keyset.Host}})
	f.awaitKey("found")
	f.Want([]keyset.Key{{Location: keyset.Location{Issuer: s.URL + "/realms/shop"}, Reach: keyset.Host}})
	f.awaitProblem("to the letter")
}

// What is no key set is refused, by what came and never by what was in it.
func TestBadAnswers(t *testing.T) {
	const marker = "very-private"
	released := make(chan struct{})
	defer close(released)
	slow := func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}
	of := func(status int, kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}
	to := func(where string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", where)
			w.WriteHeader(http.StatusFound)
		}
	}
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		want   string
	}{
		"HTML":            {of(200, "text/html; charset=utf-8", "<html>"+marker), "answered 200 (text/html), and no JSON object"},
		"not found":       {of(404, "text/html", marker), "answered 404 (text/html)"},
		"an error":        {of(500, "", marker), "answered 500"},
		"no content":      {of(204, "application/json", ""), "answered 204"},
		"2 MB":            {of(200, "application/json", `{"keys":["`+strings.Repeat(marker, 2<<20/len(marker))+`"]}`), "with more than 262144 bytes"},
		"another object":  {of(200, "application/json", `{"a":"`+marker+`"}`), "has no key to verify signatures with"},
		"broken JSON":     {of(200, "application/json", `{"keys": [`), "is no JSON Web Key Set"},
		"a shared secret": {of(200, "application/json", `{"keys":[{"kty":"oct","k":"`+marker+`"}]}`), "shared secret"},
		"nothing":         {slow, "it took too long"},
		"a drip": {func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			slow(w, r)
		}, "it took too long"},
		"round and round":          {to("/jwks"), "redirects more than 3 times"},
		"no Location":              {to(""), "without a Location"},
		"to plain HTTP":            {to("http://id.example/?" + marker), "which is no https URL"},
		"to a metadata service":    {to("https://169.254.169.254/latest"), "resolves to 169.254.169.254, where no key sets are fetched from"},
		"to a password":            {to("https://a:" + marker + "@id.example/"), "has a user or a password"},
		"to a file":                {to("file:///etc/passwd"), "which is no https URL"},
		"a content type of theirs": {of(404, "text/"+strings.Repeat("x", 4096), ""), "answered 404 (text/xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.handle)
			f := run(t, Options{Roots: s.roots()}, func(f *Fetcher) {
				if strings.Contains(c.want, "too long") {
					f.pace.whole = 200 * time.Millisecond
				}
			})
			f.Want([]keyset.Key{uri(s.URL + "/jwks")})
			a := f.awaitProblem(c.want)
			if a.Keys != "" || !strings.Contains(a.Problem, s.URL+"/jwks") {
				t.Errorf("%+v", a)
			}
			f.end()
			if strings.Contains(a.Problem, marker) || strings.Contains(f.log.String(), marker) || len(a.Problem) > 1024 {
				t.Errorf("what came is told: %s\n%s", a.Problem, f.log)
			}
		})
	}
}

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
		"loopback":                     {uri: "https://loop.example.com/", problem: `"loop.example.com" resolves to 127.0.0.1, where no key sets are fetched from`},
		"loopback in IPv6":             {uri: "https://mapped.example.com/", problem: "resolves to 127.0.0.1"},
		"a metadata service":           {uri: "https://meta.example.com/", problem: "resolves to 169.254.169.254"},
		"a metadata service by NAT64":  {uri: "https://nat64.example.com/", problem: "resolves to 169.254.169.254"},
		"a pod":                        {uri: "https://pod.example.com/", problem: "a private address, which the GatewayClass doesn't allow"},
		"a Service":                    {uri: "https://payments.victim.svc/", problem: "names in .svc are of the cluster"},
		"a Service by a short name":    {uri: "https://id.victim/", problem: "there is no such host"},
		"a host of one label":          {uri: "https://kubernetes/", problem: "it has no dot"},
		"an address":                   {uri: "https://10.96.0.1/", problem: "it is an IP address"},
		"the API server":               {uri: "https://api.example.com/", problem: "it is the API server"},
		"the API server by NAT64":      {uri: "https://api6.example.com/", problem: "it is the API server"},
		"a redirect to loopback":       {uri: "https://example.com/", answer: "https://127.0.0.1/", problem: "it is an IP address"},
		"a redirect to a metadata one": {uri: "https://example.com/", answer: "https://169.254.169.254/latest", problem: "it is an IP address"},
		"a redirect to a name of it":   {uri: "https://example.com/", answer: "https://meta.example.com/latest", problem: "resolves to 169.254.169.254"},
		"a redirect to a Service":      {uri: "https://example.com/", answer: "https://a.b.svc.cluster.local/", problem: "names in .local are of the cluster"},
		"an allowed name":              {reach: inside, uri: "https://id.corp.example.com/keys", dials: "10.96.0.5:443"},
		"an allowed Service":           {reach: inside, uri: "https://in.auth.svc/keys", problem: "its certificate is for other hosts", dials: "10.96.0.6:443"},
		"a name at another address":    {reach: inside, uri: "https://other.corp.example.com/", problem: "resolves to 10.0.0.1, a private address"},
		"another name at its address":  {reach: inside, uri: "https://pod.example.com/", problem: "resolves to 10.96.0.5, a private address"},
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
	f.awaitProblem("resolves to 127.0.0.1")
	for address := range addresses.Range {
		if address != "93.184.216.34:443" {
			t.Errorf("%v was connected to", address)
		}
	}
}

// A server that is down is asked again, and what was good stays in force meanwhile.
func TestServerComesAndGoes(t *testing.T) {
	s := serve(t, says(jwks(t, "good")))
	s.answer(func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	f := run(t, Options{Roots: s.roots()}, nil)
	_, first := f.Want([]keyset.Key{uri(s.URL)})
	first(t.Context())
	if a := f.awaitProblem("can't be reached"); a.Keys != "" || !a.Since.IsZero() {
		t.Errorf("%+v", a)
	}
	s.answer(says(jwks(t, "good")))
	f.awaitKey("good")
	s.answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if a := f.awaitProblem("answered 503"); !strings.Contains(a.Keys, "good") || a.Since.IsZero() {
		t.Errorf("%+v", a)
	}
	s.answer(says(jwks(t, "better")))
	f.awaitKey("better")
}

// The next process has the sets of this one before it asks anybody.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, says(jwks(t, "good")))
	k, other := uri(s.URL+"/a"), uri(s.URL+"/b")
	f := run(t, Options{Roots: s.roots(), StateDir: dir}, nil)
	f.Want([]keyset.Key{k, other})
	f.awaitKey("good")
	f.awaitKey("good")
	path := filepath.Join(dir, keptFile)
	until(t, "it is kept", func() bool {
		text, _ := os.ReadFile(path)
		return strings.Count(string(text), `\"good\"`) == 2
	})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	f.Want([]keyset.Key{k})
	until(t, "what is not wanted is not kept", func() bool {
		text, _ := os.ReadFile(path)
		return strings.Count(string(text), `\"good\"`) == 1
	})
	f.end()
	s.Close()

	next := run(t, Options{Roots: s.roots(), StateDir: dir}, nil)
	known, first := next.Want([]keyset.Key{k, other})
	if a := known[k]; a == nil || !strings.Contains(a.Keys, "good") || known[other] != nil || first == nil {
		t.Errorf("the next process knows %+v", known)
	}
	if a := next.await("what was kept stays", func(a keyset.Answer) bool { return a.Keys != "" }); a.Problem == "" || a.Since.IsZero() {
		t.Errorf("%+v", a)
	}
	next.end()

	for _, text := range []string{"nonsense", `[{"URI":"` + s.URL + `/a","Reach":"host","Keys":"{}"}]`, `{}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if known, _ := run(t, Options{Roots: s.roots(), StateDir: dir}, nil).Want([]keyset.Key{k}); len(known) > 0 {
			t.Errorf("%s: %+v", text, known)
		}
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(longestWait); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not so: %s", what)
		}
	}
}

// There is a bound to the sets, and a server that never answers holds up nobody else's.
func TestBounds(t *testing.T) {
	released := make(chan struct{})
	defer close(released)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/good" {
			select {
			case <-released:
			case <-r.Context().Done():
			}
			return
		}
		says(jwks(t, "good"))(w, r)
	})
	f := run(t, Options{Roots: s.roots()}, func(f *Fetcher) { f.pace.whole = time.Minute })
	var keys []keyset.Key
	for i := range 64 {
		keys = append(keys, uri(fmt.Sprint(s.URL, "/silent/", i)))
	}
	f.Want(keys)
	f.Want(append(keys, uri(s.URL+"/good")))
	f.awaitKey("good")

	// No server answers here, so that nothing but the bound is looked at.
	g := run(t, Options{Resolver: names{}}, func(g *Fetcher) { g.pace.first, g.pace.last = time.Hour, time.Hour })
	keys = nil
	for i := range MaxSets + 2 {
		keys = append(keys, keyset.Key{Location: keyset.Location{URI: fmt.Sprintf("https://%d.example.org/", i)}})
	}
	known, _ := g.Want(keys)
	if len(known) != 2 {
		t.Errorf("%d of %d are refused", len(known), len(keys))
	}
	for _, a := range known {
		if !strings.Contains(a.Problem, "no more than 1024") {
			t.Errorf("%+v", a)
		}
	}
}
