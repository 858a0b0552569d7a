package identity_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/identity/client"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// certificate has the controller sign one for a pod, for a life.
func (c *cluster) certificate(t *testing.T, a *identity.Authority, gateway, pod string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	chain, _, _, err := a.Issue(&key.PublicKey, object.Name{Namespace: "ns", Name: gateway}, identity.Proxy, pod)
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
	u, err := url.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return certs.Sign(&x509.Certificate{URIs: []*url.URL{u}, IsCA: true, BasicConstraintsValid: true}, nil, nil).TLS()
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
