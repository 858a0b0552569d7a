package identity_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/identity/client"
)

// serverName is what a controller's certificate is for.
const serverName = "gatehouse." + system + ".svc"

// asker sends requests for certificates, well-formed or not.
type asker struct {
	h    *controller
	from string // address
	tls  *tls.Config
}

func (h *controller) asker(from string) *asker {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(h.authority.Bundle())
	return &asker{h: h, from: from, tls: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: serverName}}
}

func (a *asker) do(method, path, token, body string) (code int, answer []byte, err error) {
	return a.doFor(context.Background(), method, path, token, body)
}

// doFor is do until the context ends.
func (a *asker) doFor(ctx context.Context, method, path, token, body string) (code int, answer []byte, err error) {
	transport := &http.Transport{
		TLSClientConfig:   a.tls,
		DisableKeepAlives: true,
		DialContext:       (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(a.from)}}).DialContext,
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, "https://"+a.h.api+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// ask asks for a certificate with a good body.
func (a *asker) ask(token string) (code int, answer []byte) {
	a.h.t.Helper()
	code, answer, err := a.do(http.MethodPost, client.Path, token, body(csr(a.h.t, newKey(a.h.t), nil)))
	if err != nil {
		a.h.t.Fatal(err)
	}
	return code, answer
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func csr(t *testing.T, key crypto.Signer, template *x509.CertificateRequest) []byte {
	t.Helper()
	if template == nil {
		template = &x509.CertificateRequest{}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func body(der []byte) string {
	raw, _ := json.Marshal(client.Request{CSR: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))})
	return string(raw)
}
