package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// member is a client whose certificate has a name.
func member(t *testing.T, ca *certs.Certificate, name string, uses ...x509.ExtKeyUsage) *pod {
	t.Helper()
	u, err := url.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	s := startController(t, ca, time.Hour)
	s.set(func() { s.template = x509.Certificate{URIs: []*url.URL{u}, ExtKeyUsage: uses} })
	p := startPod(t, s, "127.0.0.1:1", ca, io.Discard)
	select {
	case <-p.Ready():
	case <-time.After(patience):
		t.Fatal("no certificate")
	}
	return p
}

// counts connects a proxy to what counts, and returns what either of them says against it.
func counts(t *testing.T, proxy, limits *pod) error {
	t.Helper()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lis := tls.NewListener(inner, limits.LimitsTLS("team", "web"))
	defer lis.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := lis.Accept()
		if err != nil {
			served <- err
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, err = io.WriteString(conn, "counted")
		served <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := proxy.DialLimits(ctx, inner.Addr().String(), "team", "web")
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(patience))
		answer, failed := io.ReadAll(conn)
		if err = failed; err == nil && string(answer) != "counted" {
			err = errors.New("nothing was counted")
		}
		_ = conn.Close()
	}
	_ = lis.Close()
	return errors.Join(err, <-served)
}

// Proxies are counted by what counts for their Gateway, and what counts does so for nobody else.
func TestNeighbours(t *testing.T) {
	ca, other := certs.Authority("roots"), certs.Authority("others")
	const prefix = "spiffe://gatehouse.dev/ns/team/gateway/"
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	proxy, limits := member(t, ca, prefix+"web/pod/web-1", both[0]), member(t, ca, prefix+"web/limits/web-limits-1", both...)
	if err := counts(t, proxy, limits); err != nil {
		t.Errorf("a proxy of the Gateway: %v", err)
	}
	for who, p := range map[string]*pod{
		"a proxy of another Gateway":           member(t, ca, prefix+"shop/pod/shop-1", both[0]),
		"one of a namespace with such a name":  member(t, ca, "spiffe://gatehouse.dev/ns/team2/gateway/web/pod/web-1", both[0]),
		"what counts itself":                   member(t, ca, prefix+"web/limits/web-limits-2", both...),
		"a name with more behind it":           member(t, ca, prefix+"web/pod/web-1/more", both[0]),
		"the controller":                       member(t, ca, "spiffe://gatehouse.dev/controller/gatehouse-1", both...),
		"one whose certificate is for servers": member(t, ca, prefix+"web/pod/web-1", both[1]),
		"a proxy of another installation":      member(t, other, prefix+"web/pod/web-1", both[0]),
	} {
		if err := counts(t, p, limits); err == nil {
			t.Errorf("%s is counted", who)
		}
	}
	for who, p := range map[string]*pod{
		"a proxy":                      member(t, ca, prefix+"web/pod/web-2", both...),
		"what counts for another":      member(t, ca, prefix+"shop/limits/shop-limits-1", both...),
		"one that is no server":        member(t, ca, prefix+"web/limits/web-limits-1", both[0]),
		"one of another installation":  member(t, other, prefix+"web/limits/web-limits-1", both...),
		"one without a name of a pod":  member(t, ca, prefix+"web/limits/", both...),
		"a controller with that usage": member(t, ca, "spiffe://gatehouse.dev/controller/gatehouse-1", both...),
	} {
		if err := counts(t, proxy, p); err == nil {
			t.Errorf("a proxy is counted by %s", who)
		}
	}
}
