package identity_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/identity/client"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
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

// forge signs a token as the API server would, with any key.
func forge(t *testing.T, key *rsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	encode := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	id := sha256.Sum256(der)
	text := encode(map[string]string{"alg": "RS256", "typ": "JWT", "kid": base64.RawURLEncoding.EncodeToString(id[:])}) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (c *cluster) claims(pod *corev1.Pod, account string, expiry time.Time) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": c.Issuer, "aud": []string{identity.Audience}, "sub": "system:serviceaccount:" + pod.Namespace + ":" + account,
		"iat": now.Add(-time.Hour).Unix(), "nbf": now.Add(-time.Hour).Unix(), "exp": expiry.Unix(),
		"kubernetes.io": map[string]any{
			"namespace":      pod.Namespace,
			"serviceaccount": map[string]any{"name": account, "uid": "00000000-0000-0000-0000-000000000000"},
			"pod":            map[string]any{"name": pod.Name, "uid": string(pod.UID)},
		},
	}
}

func TestAttacks(t *testing.T) {
	c := startCluster(t)
	h := c.controller(t, identity.Options{})
	a := c.pod(t, "ns", "a-1", "a-sa", "a", "127.0.0.1")
	b := c.pod(t, "ns", "b-1", "b-sa", "b", "127.0.0.1")
	stranger := c.pod(t, "ns", "stranger", "stranger-sa", "a", "127.0.0.1")

	t.Run("tokens", func(t *testing.T) { c.attackByToken(t, h, a, b, stranger) })
	t.Run("requests", func(t *testing.T) { c.attackByRequest(t, h, a) })
	t.Run("connections", func(t *testing.T) { c.attackByConnection(t, h, a) })
	t.Run("xDS", func(t *testing.T) { c.attackByXDS(t, h, a, b) })
	t.Run("flood", func(t *testing.T) { c.attackByFlood(t, h, a) })
}

func (c *cluster) attackByToken(t *testing.T, h *controller, a, b, stranger *corev1.Pod) {
	otherKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	deleted := c.pod(t, "ns", "a-deleted", "a-sa", "a", "127.0.0.1")
	deletedToken := c.token(t, "ns", "a-sa", deleted, identity.Audience)
	c.delete(t, deleted)
	replaced := c.pod(t, "ns", "a-replaced", "a-sa", "a", "127.0.0.1")
	replacedToken := c.token(t, "ns", "a-sa", replaced, identity.Audience)
	c.delete(t, replaced)
	c.pod(t, "ns", "a-replaced", "a-sa", "a", "127.0.0.1")
	ended := c.pod(t, "ns", "a-ended", "a-sa", "a", "127.0.0.1")
	ended.Status.Phase = corev1.PodSucceeded
	if err := c.client.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	disguised := c.pod(t, "ns", "a-disguised", "a-sa", "b", "127.0.0.1")
	elsewhere := c.pod(t, "other", "a-1", "a-sa", "a", "127.0.0.1")
	gone := c.pod(t, "ns", "gone-1", "gone-sa", "gone", "127.0.0.1")
	unlabelled := c.pod(t, "ns", "a-plain", "a-sa", "", "127.0.0.1")
	foreign := c.pod(t, "ns", "a-annotated", "a-sa", "a", "127.0.0.1")
	foreign.Annotations = map[string]string{"gatehouse.dev/gateway": "third/a"}
	if err := c.client.Update(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	disguisedFormer := c.pod(t, "ns", "b-former", "a-former-sa", "b", "127.0.0.1")
	goneFormer := c.pod(t, "ns", "gone-former", "a-former-sa", "gone", "127.0.0.1")
	unborn := c.pod(t, "ns", "a-unborn", "a-sa", "a")

	token := func(pod *corev1.Pod) string {
		return c.token(t, pod.Namespace, pod.Spec.ServiceAccountName, pod, identity.Audience)
	}
	soon := time.Now().Add(time.Hour)
	good := token(a)
	for i, tc := range []struct {
		name, token, from string
		code              int
		reason            string
	}{
		{"no token", "", "", 401, "no-token"},
		{"no JSON web token", "nonsense", "", 401, "malformed-token"},
		{"no JSON in the token", "a.b.c", "", 401, "malformed-token"},
		{"expired", forge(t, c.ServiceAccountKey, c.claims(a, "a-sa", time.Now().Add(-time.Minute))), "", 401, "expired-token"},
		{"for ever", forge(t, otherKey, c.claims(a, "a-sa", time.Unix(1<<40, 0))), "", 401, "invalid-token"},
		{"signed by another key", forge(t, otherKey, c.claims(a, "a-sa", soon)), "", 401, "invalid-token"},
		{"altered", alter(good), "", 401, "invalid-token"},
		{"for the API server", c.token(t, "ns", "a-sa", a), "", 401, "foreign-audience"},
		{"for another audience", c.token(t, "ns", "a-sa", a, "somebody"), "", 401, "foreign-audience"},
		{"not bound to a pod", c.token(t, "ns", "a-sa", nil, identity.Audience), "", 403, "unbound-token"},
		{"of a foreign ServiceAccount", token(stranger), "", 403, "foreign-pod"},
		{"of A's ServiceAccount in a pod labelled as B's", token(disguised), "", 403, "foreign-pod"},
		{"of A's former ServiceAccount in a pod labelled as B's", token(disguisedFormer), "", 403, "foreign-pod"},
		{"of A's former ServiceAccount in a pod labelled as of a Gateway that is gone", token(goneFormer), "", 403, "foreign-pod"},
		{"of another namespace", token(elsewhere), "", 403, "foreign-pod"},
		{"of a pod that claims another namespace's Gateway", token(foreign), "", 403, "foreign-pod"},
		{"of a pod without a label", token(unlabelled), "", 403, "foreign-pod"},
		{"of a Gateway that is gone", token(gone), "", 403, "foreign-pod"},
		{"of a deleted pod", deletedToken, "", 401, "invalid-token"},
		{"of the predecessor of a pod", replacedToken, "", 401, "invalid-token"},
		{"of a pod that has ended", token(ended), "", 403, "pod-gone"},
		{"of a pod without an address", token(unborn), "", 403, "pod-no-address"},
		{"replayed from another address", good, "127.0.0.2", 403, "foreign-address"},
		{"of B, replayed by A", token(b), "127.0.0.3", 403, "foreign-address"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := h.in(t)
			from := tc.from
			if from == "" {
				from = fmt.Sprintf("127.0.2.%d", i) // none asks too often
			}
			issued := h.counted("gatehouse_identity_certificates_total", "")
			h.expectRefusal(apiRefusals, tc.reason, func() {
				code, answer := h.asker(from).ask(tc.token)
				if code != tc.code || !strings.Contains(string(answer), `"error"`) {
					t.Errorf("got %d %s, want %d", code, answer, tc.code)
				}
			})
			if h.counted("gatehouse_identity_certificates_total", "") != issued {
				t.Error("a certificate was issued")
			}
			if len(tc.token) > 20 && strings.Contains(h.log.String(), tc.token[len(tc.token)-20:]) {
				t.Error("the log has the token")
			}
		})
	}

	// A proxy of the class that a Gateway had before serves until it has moved.
	t.Run("of A's former fleet", func(t *testing.T) {
		former := c.pod(t, "ns", "a-former", "a-former-sa", "a", "127.0.0.1")
		if code, answer := h.in(t).asker("127.0.0.1").ask(token(former)); code != 200 {
			t.Errorf("it is refused: %d %s", code, answer)
		}
	})

	t.Run("of a pod deleted a moment after it was good", func(t *testing.T) {
		h := h.in(t)
		pod := c.pod(t, "ns", "a-late", "a-sa", "a", "127.0.0.1")
		late := token(pod)
		if code, answer := h.asker("127.0.0.1").ask(late); code != 200 {
			t.Fatalf("the good token is refused: %d %s", code, answer)
		}
		c.delete(t, pod)
		// The API server remembers good tokens for some seconds.
		before := h.counted(apiRefusals, "pod-gone") + h.counted(apiRefusals, "invalid-token")
		if code, answer := h.asker("127.0.0.1").ask(late); code != 401 && code != 403 {
			t.Errorf("got %d %s", code, answer)
		}
		if h.counted(apiRefusals, "pod-gone")+h.counted(apiRefusals, "invalid-token") != before+1 {
			t.Error("the refusal is not counted")
		}
	})
}

// alter changes what a token says, and leaves its signature.
func alter(token string) string {
	parts := strings.Split(token, ".")
	raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
	parts[1] = base64.RawURLEncoding.EncodeToString(bytes.ReplaceAll(raw, []byte("a-sa"), []byte("b-sa")))
	return strings.Join(parts, ".")
}

// in is a controller whose failures are a subtest's.
func (h *controller) in(t *testing.T) *controller {
	return &controller{
		t: t, authority: h.authority, server: h.server, xds: h.xds, log: h.log, api: h.api, ads: h.ads,
		registry: h.registry, fleets: h.fleets,
	}
}

func (c *cluster) attackByRequest(t *testing.T, h *controller, a *corev1.Pod) {
	good := c.token(t, "ns", "a-sa", a, identity.Audience)
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stolen := csr(t, newKey(t), nil)
	stolen[len(stolen)-5] ^= 1
	for name, body := range map[string]string{
		"nothing":                  "",
		"no JSON":                  "csr",
		"no request":               `{"csr": "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"}`,
		"a certificate":            `{"csr": ` + quote(string(h.authority.Bundle())) + `}`,
		"an RSA key":               body(csr(t, weak, nil)),
		"a key of another curve":   body(csr(t, p384, nil)),
		"a key that isn't theirs":  body(stolen),
		"a megabyte":               `{"csr": "` + strings.Repeat("A", 1<<20) + `"}`,
		"a body that doesn't stop": body(csr(t, newKey(t), &x509.CertificateRequest{DNSNames: make64k()})),
	} {
		t.Run(name, func(t *testing.T) {
			h := h.in(t)
			h.expectRefusal(apiRefusals, "bad-request", func() {
				code, answer, err := h.asker("127.0.0.4").do(http.MethodPost, client.Path, good, body)
				if err != nil || code != 400 {
					t.Errorf("got %d %s %v", code, answer, err)
				}
			})
		})
	}

	t.Run("names in the request count for nothing", func(t *testing.T) {
		h := h.in(t)
		_, ed, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		code, raw, err := h.asker("127.0.0.1").do(http.MethodPost, client.Path, good, body(csr(t, ed, &x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: "controller"},
			DNSNames: []string{serverName},
			URIs: []*url.URL{
				{Scheme: "spiffe", Host: "gatehouse.dev", Path: "/ns/ns/gateway/b/pod/b-1"},
				{Scheme: "spiffe", Host: "gatehouse.dev", Path: "/controller/x"},
			},
		})))
		if err != nil || code != 200 {
			t.Fatalf("got %d %s %v", code, raw, err)
		}
		cert := issued(t, raw)
		if len(cert.DNSNames) > 0 || cert.Subject.CommonName != "" || len(cert.URIs) != 1 ||
			cert.URIs[0].String() != "spiffe://gatehouse.dev/ns/ns/gateway/a/pod/a-1" {
			t.Errorf("the certificate is for %v %v %v", cert.Subject, cert.DNSNames, cert.URIs)
		}
		if cert.IsCA || len(cert.ExtKeyUsage) != 1 || cert.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth {
			t.Errorf("the certificate is good for %v, CA %v", cert.ExtKeyUsage, cert.IsCA)
		}
		if life := time.Until(cert.NotAfter); life > time.Hour || life < 50*time.Minute {
			t.Errorf("the certificate is good for %v", life)
		}
	})
	t.Run("other paths and methods", func(t *testing.T) {
		for path, want := range map[string]int{"/": 404, "/v1": 404, client.Path: 405} {
			if code, _, err := h.asker("127.0.0.1").do(http.MethodGet, path, good, ""); err != nil || code != want {
				t.Errorf("%s: got %d %v, want %d", path, code, err, want)
			}
		}
	})
}

func make64k() []string {
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("name-%d.example.com", i))
	}
	return names
}

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func issued(t *testing.T, raw []byte) *x509.Certificate {
	t.Helper()
	var answer client.Response
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(answer.Certificate))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// certificate has the controller sign one for a pod, for a life.
func (c *cluster) certificate(t *testing.T, a *identity.Authority, gateway, pod string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	chain, _, _, err := a.Issue(&key.PublicKey, ir.Name{Namespace: "ns", Name: gateway}, pod)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(chain)
	return tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}
}

// insist sends a certificate also to those who say that they don't know its
// authority, which Go's client otherwise doesn't.
func insist(cert tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
}

// foreignCertificate is one with the right name by the wrong authority.
func foreignCertificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	u, err := url.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), URIs: []*url.URL{u}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (c *cluster) attackByConnection(t *testing.T, h *controller, a *corev1.Pod) {
	good := c.token(t, "ns", "a-sa", a, identity.Audience)
	h.server.HandleControllers("GET /v1/test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pod, err := identity.Controller(*r.TLS)
		fmt.Fprint(w, pod, err)
	}))
	t.Run("plain HTTP", func(t *testing.T) {
		for metric, address := range map[string]string{apiRefusals: h.api, xdsRefusals: h.ads} {
			h.in(t).expectRefusal(metric, "handshake", func() {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n", client.Path)
				line, _ := bufio.NewReader(conn).ReadString('\n')
				if strings.Contains(line, "200") {
					t.Errorf("got %s", line)
				}
			})
		}
	})
	t.Run("TLS 1.2", func(t *testing.T) {
		h.in(t).expectRefusal(apiRefusals, "handshake", func() {
			asker := h.in(t).asker("127.0.0.1")
			asker.tls.MaxVersion = tls.VersionTLS12
			if _, _, err := asker.do(http.MethodPost, client.Path, good, ""); err == nil {
				t.Error("TLS 1.2 is spoken")
			}
		})
	})
	t.Run("a certificate of another authority", func(t *testing.T) {
		h.in(t).expectRefusal(apiRefusals, "handshake", func() {
			asker := h.in(t).asker("127.0.0.1")
			asker.tls.GetClientCertificate = insist(foreignCertificate(t, "spiffe://gatehouse.dev/controller/x"))
			if _, _, err := asker.do(http.MethodGet, "/v1/test", "", ""); err == nil {
				t.Error("it is accepted")
			}
		})
	})
	t.Run("a path for controllers", func(t *testing.T) {
		asker := h.in(t).asker("127.0.0.1")
		forbidden := func() {
			if code, _, err := asker.do(http.MethodGet, "/v1/test", good, ""); err != nil || code != 403 {
				t.Errorf("got %d %v", code, err)
			}
		}
		h.in(t).expectRefusal(apiRefusals, "not-a-controller", forbidden)
		asker.tls.Certificates = []tls.Certificate{c.certificate(t, h.authority, "a", "a-1")}
		h.in(t).expectRefusal(apiRefusals, "not-a-controller", forbidden)

		own, err := h.authority.ClientTLS()
		if err != nil {
			t.Fatal(err)
		}
		asker.tls = own
		if code, answer, err := asker.do(http.MethodGet, "/v1/test", "", ""); err != nil || code != 200 || string(answer) != "controller-1<nil>" {
			t.Errorf("a controller gets %d %q %v", code, answer, err)
		}
	})
	t.Run("a proxy passes for the controller", func(t *testing.T) {
		lis, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c.certificate(t, h.authority, "a", "a-1")},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lis.Close() })
		run(t, func(ctx context.Context) {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			if conn.(*tls.Conn).HandshakeContext(ctx) == nil {
				t.Error("somebody trusts the proxy as a controller")
			}
		})
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(h.authority.Bundle())
		conn, err := tls.Dial("tcp", lis.Addr().String(), &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: serverName})
		if err == nil {
			_ = conn.Close()
			t.Error("it is trusted")
		}
	})
}

// proxy is what runs in a pod: the client for its identity, over whose connections
// xDS is spoken.
type proxy struct {
	t *testing.T
	*client.Client
}

func (h *controller) proxy(t *testing.T, token string) *proxy {
	t.Helper()
	dir := t.TempDir()
	p := &proxy{t: t}
	o := client.Options{
		API: h.api, XDS: h.ads, ServerName: serverName,
		TokenFile: filepath.Join(dir, "token"), CAFile: filepath.Join(dir, "ca.crt"),
	}
	for file, text := range map[string]string{o.TokenFile: token, o.CAFile: string(h.authority.Bundle())} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if p.Client, err = client.New(o); err != nil {
		t.Fatal(err)
	}
	run(t, p.Run)
	return p
}

// stream speaks xDS over connections that dial makes, and returns the first answer
// to a request for listeners. It goes on reading until the stream ends.
func stream(t *testing.T, dial func(context.Context) (net.Conn, error), node *corev3.Node) (answer string, ended <-chan error) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:controller", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(func() { cancel(); _ = conn.Close() })
	failed := make(chan error, 1)
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		failed <- err
		return "", failed
	}
	_ = s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: envoy.Listeners.URL(), Node: node})
	m, err := s.Recv()
	if err != nil {
		failed <- err
		return "", failed
	}
	go func() {
		_, err := s.Recv()
		failed <- err
	}()
	return string(m.GetResources()[0].GetResource().GetValue()), failed
}

// dial dials xDS with a certificate.
func (h *controller) dial(cert tls.Certificate) func(context.Context) (net.Conn, error) {
	config := h.asker("").tls
	config.GetClientCertificate = insist(cert)
	config.NextProtos = []string{"h2"}
	return func(ctx context.Context) (net.Conn, error) {
		return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", h.ads)
	}
}

func (c *cluster) attackByXDS(t *testing.T, h *controller, a, b *corev1.Pod) {
	proxyA := h.proxy(t, c.token(t, "ns", "a-sa", a, identity.Audience))
	proxyB := h.proxy(t, c.token(t, "ns", "b-sa", b, identity.Audience))
	t.Run("each has its own", func(t *testing.T) {
		if got, _ := stream(t, proxyA.Dial, &corev3.Node{Id: "ns/a", Cluster: "ns/a"}); got != "A's" {
			t.Errorf("A gets %q", got)
		}
		if got, _ := stream(t, proxyB.Dial, nil); got != "B's" {
			t.Errorf("B gets %q", got)
		}
	})
	for name, node := range map[string]*corev3.Node{
		"A asks to be B":            {Id: "ns/b", Cluster: "ns/b"},
		"A asks to be B by cluster": {Id: "ns/a", Cluster: "ns/b"},
		"A asks to be B by id":      {Id: "ns/b", Cluster: "ns/a"},
	} {
		t.Run(name, func(t *testing.T) {
			h.in(t).expectRefusal(xdsRefusals, "foreign-node", func() {
				got, ended := stream(t, proxyA.Dial, node)
				if err := <-ended; status.Code(err) != codes.PermissionDenied || got != "" {
					t.Errorf("got %q, %v", got, err)
				}
			})
		})
	}
	refused := func(metric string, cert tls.Certificate) func(*testing.T) {
		return func(t *testing.T) {
			h := h.in(t)
			h.expectRefusal(xdsRefusals, metric, func() {
				dialed := 0
				_, ended := stream(t, func(ctx context.Context) (net.Conn, error) {
					if dialed++; dialed > 1 {
						<-ctx.Done() // one attack, one refusal
						return nil, ctx.Err()
					}
					return h.dial(cert)(ctx)
				}, nil)
				if err := <-ended; err == nil {
					t.Error("it is let in")
				}
			})
		}
	}
	own, err := h.authority.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("no certificate", refused("handshake", tls.Certificate{}))
	t.Run("a certificate of another authority", refused("handshake", foreignCertificate(t, "spiffe://gatehouse.dev/ns/ns/gateway/b/pod/b-1")))
	t.Run("a certificate of a controller", refused("certificate", own.Certificates[0]))

	short := c.authority(t, identity.Options{Pod: "controller-2", Life: 2 * time.Second})
	ready(t, short)
	t.Run("a certificate that ends", func(t *testing.T) {
		cert := c.certificate(t, short, "a", "a-1")
		h.in(t).expectRefusal(xdsRefusals, "expired", func() {
			got, ended := stream(t, h.dial(cert), nil)
			if got != "A's" {
				t.Fatalf("got %q", got)
			}
			select {
			case <-ended:
			case <-time.After(patience):
				t.Error("the connection outlives its certificate")
			}
		})
		t.Run("and comes back", refused("handshake", cert))
	})
}

func (c *cluster) attackByFlood(t *testing.T, h *controller, a *corev1.Pod) {
	h = h.in(t)
	good := c.token(t, "ns", "a-sa", a, identity.Audience)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	forged := forge(t, other, c.claims(a, "a-sa", time.Now().Add(time.Hour)))
	before, lines := c.reviews.Load(), strings.Count(h.log.String(), "\n")
	done := make(chan struct{})
	var flood sync.WaitGroup
	for i := range 4 {
		flood.Go(func() {
			asker := h.asker(fmt.Sprintf("127.0.1.%d", i))
			for range 250 {
				code, _, err := asker.do(http.MethodPost, client.Path, forged, body(csr(t, other, nil)))
				if err != nil || code == 200 {
					t.Errorf("a bad request gets %d %v", code, err)
				}
			}
		})
	}
	go func() { flood.Wait(); close(done) }()
	asked, slowest := 0, time.Duration(0)
	for flooding := true; flooding; {
		start := time.Now()
		if code, answer := h.asker("127.0.0.1").ask(good); code != 200 {
			t.Fatalf("the good request gets %d %s", code, answer)
		}
		asked++
		slowest = max(slowest, time.Since(start))
		select {
		case <-done:
			flooding = false
		case <-time.After(20 * time.Millisecond):
		}
	}
	if asked < 5 || slowest > 5*time.Second {
		t.Errorf("beside the flood, %d good requests were answered, the slowest after %v", asked, slowest)
	}
	if n := c.reviews.Load() - before - int64(asked); n > 400 {
		t.Errorf("1000 bad requests made the API server review %d tokens", n)
	}
	if n := strings.Count(h.log.String(), "\n") - lines; n > 200 {
		t.Errorf("1000 bad requests wrote %d lines", n)
	}
	if h.counted(apiRefusals, "too-many-requests") == 0 {
		t.Error("nothing was refused for being too much")
	}
	t.Logf("%d good requests, the slowest after %v; %d reviews", asked, slowest, c.reviews.Load()-before)
}
