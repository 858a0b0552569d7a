package envoy
import ("testing"; "crypto/x509"; "crypto/x509/pkix"; "crypto/rsa"; "crypto/ecdsa"; "crypto/ed25519"; "crypto/elliptic"; "crypto"; "crypto/rand"; "encoding/pem"; "math/big"; "time"
 "github.com/gatehouse-dev/gatehouse/internal/ir"
 bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
 "os/exec"
)
func mk(t *testing.T, key crypto.Signer, mod func(*x509.Certificate)) (string,string) {
	tpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"a.example"}}
	if mod != nil { mod(tpl) }
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, key.Public(), key)
	if err != nil { t.Fatal(err) }
	kd, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil { t.Fatal(err) }
	return string(pem.EncodeToMemory(&pem.Block{Type:"CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type:"PRIVATE KEY", Bytes: kd}))
}
func tryPair(t *testing.T, name, c, k string) {
	s := &setup{listeners: []*ir.Listener{{Name: "https-443", Addresses: []string{"127.0.0.1"}, Chains: []ir.Chain{{Table: "x", TLS: &ir.TLS{Certificates: []string{"s"}}}}}}}
	dir := socketDir(t)
	var b *bootstrapv3.Bootstrap = s.bootstrap(t, dir+"/a")
	b.StaticResources.Secrets = []*tlsv3.Secret{{Name: "s", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: inline(c), PrivateKey: inline(k)}}}}
	out, err := exec.Command(binary(t), "--mode", "validate", "-c", write(t, dir, b), "--log-level", "error").CombinedOutput()
	_, ours := Secret(&ir.Secret{Name: "s", Certificate: c, Key: ir.Sensitive(k)})
	if len(out) > 300 { out = out[:300] }
	t.Logf("%s: envoy %v / ours %v\n%s", name, err == nil, ours, out)
}
func TestProbe(t *testing.T) {
	r1, _ := rsa.GenerateKey(rand.Reader, 2048)
	t.Setenv("GODEBUG", "rsa1024min=0")
	r2, _ := rsa.GenerateKey(rand.Reader, 1024)
	p224, _ := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	p256, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	p521, _ := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	for n, k := range map[string]crypto.Signer{"rsa2048": r1, "rsa1024": r2, "p224": p224, "p256": p256, "p384": p384, "p521": p521, "ed": ed} {
		if k == nil { continue }
		c, key := mk(t, k, nil)
		tryPair(t, n, c, key)
	}
	c, k := mk(t, p256, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	tryPair(t, "expired", c, k)
	c, k = mk(t, p256, nil)
	tryPair(t, "junk before", "hello\n"+c, k)
	tryPair(t, "junk after", c+"junk\n", k)
	tryPair(t, "key first in cert", k+c, k)
	tryPair(t, "cert in key", c, c+k)
	tryPair(t, "second cert broken", c+"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", k)
	tryPair(t, "twice", c+c, k)
	tryPair(t, "crlf", c, string([]byte(k)))
	ec, _ := x509.MarshalECPrivateKey(p256)
	tryPair(t, "ec key", c, string(pem.EncodeToMemory(&pem.Block{Type:"EC PRIVATE KEY", Bytes: ec})))
	tryPair(t, "ec params + key", c, "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"+string(pem.EncodeToMemory(&pem.Block{Type:"EC PRIVATE KEY", Bytes: ec})))
	c, k = mk(t, p256, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCertSign })
	tryPair(t, "keyusage", c, k)
	c, k = mk(t, p256, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	tryPair(t, "eku client", c, k)
	c, k = mk(t, p256, func(c *x509.Certificate) { c.DNSNames = nil; c.Subject.CommonName = "" })
	tryPair(t, "no name", c, k)
	pk1 := string(pem.EncodeToMemory(&pem.Block{Type:"RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(r1)}))
	c, _ = mk(t, r1, nil)
	tryPair(t, "pkcs1", c, pk1)
	c, k = mk(t, p256, nil)
	tryPair(t, "spaces", "  \n"+c, "\n\n"+k)
	tryPair(t, "empty key", c, "")
	tryPair(t, "bare", "", k)
}
