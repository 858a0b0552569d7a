package identity

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

var testPeriods = periods{root: 300 * time.Hour, distribution: 24 * time.Hour, overlap: 2 * time.Hour}

func mustAdvance(t *testing.T, r *roots, now time.Time) *roots {
	t.Helper()
	next, err := r.advance(now, testPeriods)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// A controller and a proxy whose clocks are ten minutes apart know each other, also by a root and by certificates that
// have just been made.
func TestClocksApart(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, apart := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		r := mustAdvance(t, nil, now.Add(apart))
		cert, err := r.current.sign(&x509.Certificate{
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}, now.Add(apart), time.Hour, &r.current.key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		// Until it is renewed, when two thirds of its life are over, by either clock.
		for _, at := range []time.Time{now, now.Add(40 * time.Minute), now.Add(apart + 40*time.Minute)} {
			if _, err := cert.Verify(x509.VerifyOptions{Roots: r.pool(), CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
				t.Errorf("a clock that is %s ahead, %s later: %v", apart, at.Sub(now), err)
			}
		}
	}
}

// A whole life of the authority, hour by hour: whoever knows the roots of an hour
// trusts what is signed in the next two, and what was signed in the last two.
func TestRotationKeepsEverybodyTrusted(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var r *roots
	type signed struct {
		cert *x509.Certificate
		at   time.Time
	}
	var history []signed
	var bundles []*x509.CertPool
	signers := map[string]bool{}
	for hour := range 2000 {
		now := start.Add(time.Duration(hour) * time.Hour)
		r = mustAdvance(t, r, now)
		cert, err := r.current.sign(&x509.Certificate{
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}, now, time.Hour, &r.current.key.PublicKey)
		if err != nil {
			t.Fatalf("hour %d: %v", hour, err)
		}
		if cert.NotAfter.Before(now.Add(time.Hour)) {
			t.Fatalf("hour %d: a certificate of %s only", hour, cert.NotAfter.Sub(now))
		}
		signers[r.current.cert.Subject.CommonName] = true
		history = append(history, signed{cert, now})
		bundles = append(bundles, r.pool())
		for _, s := range history[max(0, len(history)-2):] {
			if _, err := s.cert.Verify(x509.VerifyOptions{Roots: r.pool(), CurrentTime: s.at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
				t.Fatalf("hour %d: what was signed an hour ago is not trusted: %v", hour, err)
			}
		}
		// A proxy may hear of roots a day late.
		if _, err := cert.Verify(x509.VerifyOptions{Roots: bundles[max(0, len(bundles)-24)], CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			t.Fatalf("hour %d: who knows the roots of yesterday doesn't trust what is signed now: %v", hour, err)
		}
		if n := len(r.trusted()); n > 3 {
			t.Fatalf("hour %d: %d roots", hour, n)
		}
	}
	if len(signers) < 5 {
		t.Errorf("only %d roots have signed in 2000 hours", len(signers))
	}
}

// The shortest lives that the configuration allows: a certificate is a quarter of its
// root. Each root signs for as long as its certificates are good in full, and its
// successor has been told about by then.
func TestShortLives(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, life := range []time.Duration{40 * time.Minute, 48 * time.Hour, 20 * 24 * time.Hour} {
		p := Options{RootLife: life, Life: life / 4}.withDefaults()
		const steps = 600 // of a life
		var r *roots
		var last *x509.CertPool // that somebody knows who is late
		for i := range 5 * steps {
			now := start.Add(time.Duration(i) * life / steps)
			next, err := r.advance(now, p.periods())
			if err != nil {
				t.Fatal(err)
			}
			r = next
			cert, err := r.current.sign(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, now, p.Life, &r.current.key.PublicKey)
			if err != nil {
				t.Fatalf("%s, step %d: %v", life, i, err)
			}
			if got := cert.NotAfter.Sub(now); got < p.Life*9/10 {
				t.Fatalf("%s, step %d: a certificate of %s instead of %s", life, i, got, p.Life)
			}
			if i%(steps/24) == 0 { // half of the time for which a successor is only trusted
				if last != nil {
					if _, err := cert.Verify(x509.VerifyOptions{Roots: last, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
						t.Fatalf("%s, step %d: who is a little late doesn't trust what is signed: %v", life, i, err)
					}
				}
				last = r.pool()
			}
		}
	}
}

func TestRootThatIsOverIsReplaced(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := mustAdvance(t, nil, start)
	late := mustAdvance(t, r, start.Add(testPeriods.root))
	if late.current.cert.Equal(r.current.cert) || len(late.trusted()) != 1 {
		t.Error("a root that is over is still there")
	}
	r = mustAdvance(t, r, start.Add(testPeriods.root*2/3))
	if r.next == nil {
		t.Fatal("there is no next root after two thirds")
	}
	late = mustAdvance(t, r, start.Add(testPeriods.root))
	if !late.current.cert.Equal(r.next.cert) {
		t.Error("the next root, which is known already, doesn't take over")
	}
}

func TestRootsSurviveTheSecret(t *testing.T) {
	start := time.Now()
	r := mustAdvance(t, nil, start)
	r = mustAdvance(t, r, start.Add(testPeriods.root*2/3))
	r = &roots{current: r.current, next: r.next, previous: mustAdvance(t, nil, start).current.cert, until: start.Truncate(time.Second).UTC()}
	data, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := parseRoots(data)
	if err != nil {
		t.Fatal(err)
	}
	if string(back.bundle()) != string(r.bundle()) || !back.until.Equal(r.until) ||
		!back.current.key.Equal(r.current.key) || !back.next.key.Equal(r.next.key) {
		t.Error("the roots are others after the Secret")
	}
}

func TestBadSecretIsToldWithoutTheKey(t *testing.T) {
	one := mustAdvance(t, nil, time.Now())
	two := mustAdvance(t, nil, time.Now())
	good, err := one.encode()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := two.encode()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := one.current.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "leaf"}}, time.Now(), time.Hour, &one.current.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(map[string][]byte){
		"tls.crt is missing":                      func(d map[string][]byte) { delete(d, keyCert) },
		"tls.crt is not a certificate in PEM":     func(d map[string][]byte) { d[keyCert] = d[keyKey] },
		"tls.crt is not a certificate that may":   func(d map[string][]byte) { d[keyCert] = encodeCert(leaf) },
		"tls.key is not a private key in PEM":     func(d map[string][]byte) { delete(d, keyKey) },
		"tls.key is not the key of the":           func(d map[string][]byte) { d[keyKey] = foreign[keyKey] },
		"next.key is not a private key in PEM":    func(d map[string][]byte) { d[keyNextCert] = foreign[keyCert] },
		"previous.crt is not a certificate in":    func(d map[string][]byte) { d[keyPrevious] = []byte("x") },
		"previous.until is not a time as in 2006": func(d map[string][]byte) { d[keyPrevious] = foreign[keyCert] },
	} {
		data := maps.Clone(good)
		change(data)
		_, err := parseRoots(data)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%v quotes the Secret", err)
		}
	}
}

func TestNames(t *testing.T) {
	state := func(uris ...*url.URL) tls.ConnectionState {
		return tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{URIs: uris}}}}
	}
	parse := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	type who struct {
		Gateway          object.Name
		Pod, Controller  string
		NotProxy, NotOur bool
	}
	for _, tc := range []struct {
		name  string
		state tls.ConnectionState
		want  who
	}{
		{"proxy", state(memberURI(object.Name{Namespace: "a", Name: "edge.b"}, Proxy, "edge-1")), who{Gateway: object.Name{Namespace: "a", Name: "edge.b"}, Pod: "edge-1", NotOur: true}},
		{"controller", state(controllerURI("gatehouse-1")), who{Controller: "gatehouse-1", NotProxy: true}},
		{"nothing verified", tls.ConnectionState{PeerCertificates: []*x509.Certificate{{URIs: []*url.URL{controllerURI("x")}}}}, who{NotProxy: true, NotOur: true}},
		{"no name", state(), who{NotProxy: true, NotOur: true}},
		{"two names", state(controllerURI("x"), controllerURI("y")), who{NotProxy: true, NotOur: true}},
		{"another domain", state(parse("spiffe://cluster.local/controller/x")), who{NotProxy: true, NotOur: true}},
		{"another scheme", state(parse("https://gatehouse.dev/controller/x")), who{NotProxy: true, NotOur: true}},
		{"too long", state(parse("spiffe://gatehouse.dev/ns/a/gateway/b/pod/c/d")), who{NotProxy: true, NotOur: true}},
		{"an escaped slash", state(parse("spiffe://gatehouse.dev/ns/a/gateway/b%2Fc/pod/d")), who{NotProxy: true, NotOur: true}},
		{"an empty part", state(parse("spiffe://gatehouse.dev/ns//gateway/b/pod/d")), who{NotProxy: true, NotOur: true}},
		{"empty controller", state(parse("spiffe://gatehouse.dev/controller/")), who{NotProxy: true, NotOur: true}},
		{"a user", state(parse("spiffe://user@gatehouse.dev/controller/x")), who{NotProxy: true, NotOur: true}},
		{"an empty query", state(parse("spiffe://gatehouse.dev/controller/x?")), who{NotProxy: true, NotOur: true}},
		{"a query", state(parse("spiffe://gatehouse.dev/controller/x?y")), who{NotProxy: true, NotOur: true}},
	} {
		var got who
		var err error
		if got.Gateway, got.Pod, err = Gateway(tc.state); err != nil {
			got.NotProxy = true
		}
		if got.Controller, err = Controller(tc.state); err != nil {
			got.NotOur = true
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", tc.name, d)
		}
	}
}
