package fleet

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// Gate stands between a controller and the API server.
type Gate struct {
	// URL is what the controller's kubeconfig names, and CA, in PEM, its certificate: without
	// TLS no token would be sent.
	URL string
	CA  []byte

	requests atomic.Int64
	writes   atomic.Int64
	fault    atomic.Pointer[Fault]
	server   *httptest.Server
}

// Fault answers a request in the API server's place, or returns false to let it pass.
type Fault func(http.ResponseWriter, *http.Request) bool

// newGate stands before the API server that a configuration leads to, for the time of a test.
func newGate(t testing.TB, config *rest.Config) *Gate {
	t.Helper()
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(config.CAData) {
		t.Fatal("the API server's authority is not known")
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool},
		MaxIdleConnsPerHost: 64,
	}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	g := &Gate{}
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if counts(r) {
			g.requests.Add(1)
			if r.Method != http.MethodGet {
				g.writes.Add(1)
			}
		}
		if fault := g.fault.Load(); fault != nil && (*fault)(w, r) {
			return
		}
		forward.ServeHTTP(w, r)
	}))
	g.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo) // of what Cut does
	g.server.StartTLS()
	g.URL = g.server.URL
	g.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
	t.Cleanup(func() {
		g.server.CloseClientConnections()
		g.server.Close()
		transport.CloseIdleConnections()
	})
	return g
}

// counts leaves out what is asked by the clock, whatever changes: Leases, the authority's Secret, lists of
// pods, and watches, which end and begin.
func counts(r *http.Request) bool {
	path := r.URL.Path
	return !strings.Contains(path, "/leases") && !strings.HasSuffix(path, "/secrets/gatehouse-ca") && !strings.HasSuffix(path, "/pods") &&
		r.URL.Query().Get("watch") == ""
}

// Requests is how many have come, without those that come by the clock.
func (g *Gate) Requests() int64 { return g.requests.Load() }

// Writes is how many of them were no reading.
func (g *Gate) Writes() int64 { return g.writes.Load() }

// Break lets a fault decide on each request, until it is called with nil.
func (g *Gate) Break(fault Fault) {
	if fault == nil {
		g.fault.Store(nil)
		return
	}
	g.fault.Store(&fault)
}

// Cut closes all connections, with the watches on them.
func (g *Gate) Cut() { g.server.CloseClientConnections() }

// Refuse answers as the API server does when it refuses a request.
func Refuse(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"a test refuses it","reason":%q,"code":%d}`, reason, code)
}
