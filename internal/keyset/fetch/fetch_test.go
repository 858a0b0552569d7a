package fetch

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
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

func uri(text string) keyset.Key {
	return keyset.Key{Location: keyset.Location{URI: text}, Reach: keyset.Host}
}

// A set that its issuer changes is replaced, keys that it takes out are gone, and who wants it
// twice fetches it once.
func TestRotation(t *testing.T) {
	s := serve(t, says(jwks(t, "old")))
	f := run(t, Options{Roots: s.roots()}, func(f *Fetcher) { f.pace.scale = 1 })
	k := uri(s.URL + "/jwks")
	known, unknown := f.Want([]keyset.Key{k, k})
	if len(known) > 0 || !slices.Equal(unknown, []keyset.Key{k}) {
		t.Fatalf("known before it was fetched: %v, %v", known, unknown)
	}
	f.awaitKey("old")
	if known, unknown := f.Want([]keyset.Key{k}); len(known)+len(unknown) > 0 {
		t.Errorf("asked for again, it is news: %v, %v", known, unknown)
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
		"HTML":      {of(200, "text/html; charset=utf-8", "<html>"+marker), "answered 200 (text/html), and no JSON object"},
		"not found": {of(404, "text/html", marker), "answered 404 (text/html)"},
		"an error":  {of(500, "", marker), "answered 500"},
		"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprint(conn, marker+" 2.0 says hello\r\n\r\n")
				conn.Close()
			}
		}, "what it answers is no HTTP"},
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
		"to a metadata service":    {to("https://169.254.169.254/latest"), "resolves to an address where no key sets are fetched from"},
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
			f.Want([]keyset.Key{uri(s.URL + "/jwks?key=" + marker)})
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

// A server that is down is asked again, and what was good stays in force meanwhile.
func TestServerComesAndGoes(t *testing.T) {
	s := serve(t, says(jwks(t, "good")))
	s.answer(func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	f := run(t, Options{Roots: s.roots()}, nil)
	f.Want([]keyset.Key{uri(s.URL)})
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
