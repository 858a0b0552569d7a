package identity_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/identity/client"
	"github.com/gatehouse-dev/gatehouse/test/output"
)

func TestAuthority(t *testing.T) {
	c := startCluster(t)
	t.Run("many start at once and agree", c.agree)
	t.Run("a Secret that can't be understood changes nothing", c.spoil)
	t.Run("deleting the Secret makes a new root", c.revoke)
	t.Run("the roots are published", c.publish)
	t.Run("a root is replaced under way", c.rotate)
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}}
}

func (c *cluster) agree(t *testing.T) {
	var all []*identity.Authority
	for i := range 5 {
		all = append(all, c.authority(t, identity.Options{Secret: "agree", Pod: "controller-" + strconv.Itoa(i)}))
	}
	for _, a := range all {
		ready(t, a)
	}
	eventually(t, func() string {
		for _, a := range all {
			if string(a.Bundle()) != string(all[0].Bundle()) {
				return "the controllers trust different roots"
			}
		}
		return ""
	})
	if n := strings.Count(string(all[0].Bundle()), "BEGIN"); n != 1 {
		t.Errorf("there are %d roots", n)
	}
}

func (c *cluster) spoil(t *testing.T) {
	log := &output.Buffer{}
	a := c.authority(t, identity.Options{Secret: "spoil", Pod: "controller-1", Log: slog.New(slog.NewTextHandler(log, nil))})
	ready(t, a)
	bundle := string(a.Bundle())
	s := secret("spoil")
	if err := c.client.Get(t.Context(), kube.ObjectKeyFromObject(s), s); err != nil {
		t.Fatal(err)
	}
	good := s.Data["tls.key"]
	s.Data["tls.key"] = []byte("not a key")
	if err := c.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if !strings.Contains(log.String(), "Secret gatehouse-system/spoil: tls.key is not a private key in PEM") {
			return "nothing is said of the bad key:\n" + log.String()
		}
		return ""
	})
	if string(a.Bundle()) != bundle {
		t.Error("the last good roots are gone")
	}
	c.certificate(t, a, "a", "a-1")
	s.Data["tls.key"] = good
	if err := c.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if !strings.Contains(log.String(), "can be followed again") {
			return "nothing is said of the good key:\n" + log.String()
		}
		return ""
	})
	if strings.Contains(log.String(), "BEGIN") {
		t.Error("the log has what is in the Secret")
	}
}

func (c *cluster) revoke(t *testing.T) {
	h := c.controller(t, identity.Options{Secret: "revoke"})
	second := c.authority(t, identity.Options{Secret: "revoke", Pod: "controller-2"})
	ready(t, second)
	changed := h.authority.Next()
	old := string(h.authority.Bundle())
	c.pod(t, "ns", "a-1", "a-sa", "a", "127.0.0.1")
	cert := c.certificate(t, h.authority, "a", "a-1")
	got, ended := stream(t, h.dial(cert), nil)
	if got != "A's" {
		t.Fatalf("got %q", got)
	}
	h.expectRefusal(xdsRefusals, "certificate", func() {
		c.delete(t, secret("revoke"))
		select {
		case <-changed:
		case <-time.After(patience):
			t.Fatal("nothing is told of the change")
		}
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("a connection by the old root stays")
		}
	})
	if now := string(h.authority.Bundle()); now == old || strings.Contains(now, old) {
		t.Error("the old root is still trusted")
	}
	eventually(t, func() string {
		if string(second.Bundle()) != string(h.authority.Bundle()) {
			return "the controllers trust different roots"
		}
		return ""
	})
}

// Who makes proxies himself finds the certificates of the roots in a ConfigMap, whatever
// happens to it, and never a key.
func (c *cluster) publish(t *testing.T) {
	a := c.authority(t, identity.Options{Secret: "publish", Pod: "controller-1", Published: "published"})
	ready(t, a)
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "published"}}
	published := func() {
		t.Helper()
		eventually(t, func() string {
			if err := c.client.Get(t.Context(), kube.ObjectKeyFromObject(o), o); err != nil {
				return err.Error()
			}
			if o.Data["ca.crt"] != string(a.Bundle()) {
				return "it has " + o.Data["ca.crt"]
			}
			return ""
		})
	}
	published()
	if len(o.Data) != 1 || strings.Contains(o.Data["ca.crt"], "KEY") {
		t.Errorf("published are %v", o.Data)
	}
	o.Data["ca.crt"] = "none"
	if err := c.client.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	published()
	if err := c.client.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	published()
	if err := c.client.Delete(t.Context(), secret("publish")); err != nil {
		t.Fatal(err)
	}
	before := o.Data["ca.crt"]
	eventually(t, func() string {
		if string(a.Bundle()) == before {
			return "the root is not replaced"
		}
		return ""
	})
	published()
}

// While a root is replaced, proxies that hear of roots by a file get certificates
// and connections all the time.
func (c *cluster) rotate(t *testing.T) {
	h := c.controller(t, identity.Options{
		Secret: "rotate", RootLife: 24 * time.Second, Distribution: 6 * time.Second, Life: 4 * time.Second,
	})
	pod := c.pod(t, "ns", "a-rotating", "a-sa", "a", "127.0.0.1")
	dir := t.TempDir()
	o := client.Options{
		API: h.api, XDS: h.ads, ServerName: serverName, Log: slog.New(slog.DiscardHandler),
		TokenFile: filepath.Join(dir, "token"), CAFile: filepath.Join(dir, "ca.crt"),
	}
	write := func(file, text string) {
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Error(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Error(err)
		}
	}
	write(o.TokenFile, c.token(t, "ns", "a-sa", pod, identity.Audience))
	write(o.CAFile, string(h.authority.Bundle()))
	changed := h.authority.Next()
	run(t, func(ctx context.Context) {
		for {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
			changed = h.authority.Next()
			select {
			case <-time.After(time.Second): // as the kubelet, it takes its time
			case <-ctx.Done():
				return
			}
			write(o.CAFile, string(h.authority.Bundle()))
		}
	})
	p, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	run(t, p.Run)
	roots := map[string]bool{}
	for deadline := time.Now().Add(time.Minute); len(roots) < 2; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the root has not been replaced")
		}
		config, err := p.TLS(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cert := config.Certificates[0]
		switch got, ended := stream(t, p.Dial, nil); {
		case got == "A's":
			roots[issuer(cert)] = true
		case time.Now().After(cert.Leaf.NotAfter): // the machine was too busy to renew it in time
		default:
			t.Fatalf("got %q, %v", got, <-ended)
		}
	}
}

func issuer(cert tls.Certificate) string { return string(cert.Leaf.AuthorityKeyId) }
