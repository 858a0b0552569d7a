package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gatehouse-dev/gatehouse/test/certs"
	"github.com/gatehouse-dev/gatehouse/test/output"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// controller answers requests for certificates.
type controller struct {
	t      *testing.T
	server *httptest.Server
	tokens chan string // that requests came with

	mu     sync.Mutex
	signer *certs.Certificate
	life   time.Duration
	refuse string
	// template is what certificates say beside their keys and when they end.
	template x509.Certificate
}

func startController(t *testing.T, c *certs.Certificate, life time.Duration) *controller {
	t.Helper()
	s := &controller{t: t, signer: c, life: life, tokens: make(chan string, 1000)}
	s.server = httptest.NewUnstartedServer(s)
	s.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.server.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{serving(t, c, "controller.test")}}
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	return s
}

func serving(t *testing.T, c *certs.Certificate, name string) tls.Certificate {
	t.Helper()
	return certs.Sign(&x509.Certificate{
		DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, nil, c).TLS()
}

func (s *controller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.tokens <- strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != "" {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(Problem{Error: s.refuse})
		return
	}
	var req Request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		s.t.Error(err)
	}
	block, _ := pem.Decode([]byte(req.CSR))
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		s.t.Error(err)
	}
	template := s.template
	template.NotAfter = time.Now().Add(s.life)
	if template.ExtKeyUsage == nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	cert := s.signer.Issue(&template, csr.PublicKey)
	_ = json.NewEncoder(w).Encode(Response{Certificate: string(cert), Authorities: string(s.signer.PEM())})
}

func (s *controller) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

type pod struct {
	*Client
	token, authorities string // files
}

func startPod(t *testing.T, s *controller, xds string, trusts *certs.Certificate, log io.Writer) *pod {
	t.Helper()
	dir := t.TempDir()
	p := &pod{token: filepath.Join(dir, "token"), authorities: filepath.Join(dir, "ca.crt")}
	p.write(t, p.token, "token-1\n")
	p.write(t, p.authorities, string(trusts.PEM()))
	var err error
	p.Client, err = New(Options{
		API: s.server.Listener.Addr().String(), XDS: xds, ServerName: "controller.test",
		TokenFile: p.token, CAFile: p.authorities, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return p
}

func (p *pod) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func (s *controller) token() string {
	s.t.Helper()
	select {
	case token := <-s.tokens:
		return token
	case <-time.After(patience):
		s.t.Fatal("no certificate is asked for")
		return ""
	}
}

func (p *pod) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.Ready():
	case <-time.After(patience):
		t.Fatal("there is no certificate")
	}
}

// xdsServer accepts whom it trusts, greets them, and tells about them.
func xdsServer(t *testing.T, serves, trusts *certs.Certificate) (address string, accepted chan *x509.Certificate) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(trusts.Leaf)
	lis, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{serving(t, serves, "controller.test")},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	})
	if err != nil {
		t.Fatal(err)
	}
	accepted = make(chan *x509.Certificate, 100)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			if tc := conn.(*tls.Conn); tc.HandshakeContext(t.Context()) == nil {
				accepted <- tc.ConnectionState().PeerCertificates[0]
				fmt.Fprint(conn, "hello")
			}
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = lis.Close(); done.Wait() })
	return lis.Addr().String(), accepted
}

func (p *pod) greeting(t *testing.T) (string, error) {
	t.Helper()
	conn, err := p.Dial(t.Context())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	b, err := io.ReadAll(conn)
	return string(b), err
}

// behindService is an address whose first connection leads to a replica that stands
// still: it is taken, and nothing comes of it. The others lead to the given one.
func behindService(t *testing.T, replica string) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for n := 0; ; n++ {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			if n == 0 {
				defer conn.Close()
				continue
			}
			to, err := net.Dial("tcp", replica)
			if err != nil {
				t.Error(err)
				return
			}
			done.Go(func() { _, _ = io.Copy(to, conn); to.Close() })
			done.Go(func() { _, _ = io.Copy(conn, to); conn.Close() })
		}
	})
	t.Cleanup(func() { lis.Close(); done.Wait() })
	return lis.Addr().String()
}

// A replica that stands still doesn't keep a proxy from the others of the Service.
func TestDialPassesAReplicaThatStandsStill(t *testing.T) {
	c := certs.Authority("one")
	s := startController(t, c, time.Hour)
	xds, _ := xdsServer(t, c, c)
	p := startPod(t, s, behindService(t, xds), c, io.Discard)
	p.wait(t)
	if got, err := p.greeting(t); got != "hello" { // a single try ends with an error
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCertificateIsRenewedWithTheTokenOfTheDay(t *testing.T) {
	c := certs.Authority("one")
	s := startController(t, c, 3*time.Second)
	xds, accepted := xdsServer(t, c, c)
	var p *pod
	s.set(func() { // the first answer waits for the second token
		p = startPod(t, s, xds, c, io.Discard)
		if got := s.token(); got != "token-1" {
			t.Fatalf("the first request has the token %q", got)
		}
		p.write(t, p.token, "token-2")
	})
	p.wait(t)
	first, err := p.certificate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.token(); got != "token-2" {
		t.Errorf("the second request has the token %q", got)
	}
	s.set(func() { s.life = time.Hour })
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		// On a busy machine the first certificate may end before there is a second one.
		if got, err := p.greeting(t); got == "hello" {
			second := <-accepted
			if !second.Equal(first.Leaf) {
				if first.Leaf.PublicKey.(*ecdsa.PublicKey).Equal(second.PublicKey) {
					t.Error("the certificate was renewed for the same key")
				}
				return
			}
		} else if time.Now().Before(first.Leaf.NotAfter) {
			t.Fatalf("got %q, %v", got, err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the renewed certificate is not used")
		}
	}
}

func TestRefusalIsRetriedAndToldWithoutTheToken(t *testing.T) {
	c := certs.Authority("one")
	s := startController(t, c, time.Hour)
	s.refuse = "the pod default/a has no address yet"
	var log output.Buffer
	p := startPod(t, s, "127.0.0.1:1", c, &log)
	s.token()
	s.token()
	s.set(func() { s.refuse = "" })
	p.wait(t)
	if !strings.Contains(log.String(), "the pod default/a has no address yet") {
		t.Errorf("the log doesn't have the reason:\n%s", log.String())
	}
	if strings.Contains(log.String(), "token-1") {
		t.Errorf("the log has the token:\n%s", log.String())
	}
}

func TestControllerOfAnotherAuthorityGetsNoToken(t *testing.T) {
	s := startController(t, certs.Authority("false"), time.Hour)
	var log output.Buffer
	startPod(t, s, "127.0.0.1:1", certs.Authority("true"), &log)
	for deadline := time.Now().Add(patience); !strings.Contains(log.String(), "unknown authority"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nothing is said about the authority:\n%s", log.String())
		}
	}
	if len(s.tokens) > 0 {
		t.Error("a token was sent to a server that can't be trusted")
	}
}

func TestNewAuthorityBringsNewCertificate(t *testing.T) {
	old, next := certs.Authority("old"), certs.Authority("next")
	s := startController(t, old, time.Hour)
	p := startPod(t, s, "127.0.0.1:1", old, io.Discard)
	p.wait(t)
	s.token()
	s.set(func() { s.signer = next })
	s.server.TLS.Certificates[0] = serving(t, next, "controller.test")
	p.write(t, p.authorities, string(next.PEM()))
	s.token()
}

func TestCertificateThatTheControllerRefusesIsReplaced(t *testing.T) {
	c := certs.Authority("one")
	s := startController(t, certs.Authority("issuer"), time.Hour)
	s.server.TLS.Certificates[0] = serving(t, c, "controller.test")
	xds, _ := xdsServer(t, c, c)
	p := startPod(t, s, xds, c, io.Discard)
	p.write(t, p.authorities, string(c.PEM())+string(s.signer.PEM()))
	p.wait(t)
	s.token()
	if got, err := p.greeting(t); err == nil {
		t.Fatalf("got %q with a certificate of a stranger", got)
	}
	s.token()
}

// Two things that a certificate must not be taken for: it ends, and it is for the
// key that was asked for.
func TestAnswerIsChecked(t *testing.T) {
	c := certs.Authority("one")
	key, other := certs.Key(), certs.Key()
	sign := func(key *ecdsa.PrivateKey, until time.Duration) string {
		return string(certs.Sign(&x509.Certificate{NotAfter: time.Now().Add(until)}, key, c).PEM())
	}
	for name, tc := range map[string]struct{ certificate, want string }{
		"empty":       {"", "has no certificate"},
		"not a cert":  {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "malformed"},
		"another key": {sign(other, time.Hour), "for another key"},
		"over":        {sign(key, -time.Minute), "do the clocks agree"},
		"good":        {sign(key, time.Hour), ""},
	} {
		_, err := certificate(&Response{Certificate: tc.certificate}, key)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

var _ net.Conn = (*conn)(nil)

// A proxy that asks again shows who it is, so that it is told from others at its address.
func TestRenewalShowsTheCertificate(t *testing.T) {
	for name, trusts := range map[string]bool{"a controller that trusts it": true, "a controller that doesn't": false} {
		t.Run(name, func(t *testing.T) {
			issuer, other := certs.Authority("one"), certs.Authority("one") // of the same name
			s := startController(t, issuer, time.Hour)
			pool := x509.NewCertPool()
			if pool.AddCert(other.Leaf); trusts {
				pool.AddCert(issuer.Leaf)
			}
			s.server.TLS.ClientAuth, s.server.TLS.ClientCAs = tls.VerifyClientCertIfGiven, pool
			shown := make(chan bool, 1000)
			s.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				shown <- len(r.TLS.VerifiedChains) > 0
				s.ServeHTTP(w, r)
			})
			p := startPod(t, s, "127.0.0.1:1", issuer, io.Discard)
			p.wait(t)
			if err := p.renew(t.Context()); err != nil {
				t.Error(err)
			}
			for i, want := range []bool{false, trusts} {
				s.token()
				if got := <-shown; got != want {
					t.Errorf("request %d shows a certificate: %t", i, got)
				}
			}
		})
	}
}
