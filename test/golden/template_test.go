package golden

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"strings"
	"text/template"

	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// expand evaluates the expressions of an input; README.md documents them.
func expand(name, text string) (string, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{
		"services": services,
		"secret": func(namespace, name string, hosts ...string) (string, error) {
			return secret("", namespace, name, hosts...)
		},
		"badSecret": secret,
		"authority": authority,
	}).Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if err := t.Execute(&out, nil); err != nil {
		return "", err
	}
	return out.String(), nil
}

// services returns Services as the conformance suite has them, without endpoints.
func services(namespace string, names ...string) string {
	var out strings.Builder
	for _, name := range names {
		fmt.Fprintf(&out, `---
apiVersion: v1
kind: Service
metadata: {name: %s, namespace: %s}
spec:
  selector: {app: %[1]s}
  ports: [{protocol: TCP, port: 8080, targetPort: 3000}]
`, name, namespace)
	}
	return out.String()
}

// The ways in which a Secret can be of no use.
const (
	mismatched = "mismatched" // the key is another certificate's
	garbage    = "garbage"    // not PEM
)

// secret returns a TLS Secret with a new certificate for the hosts. Nothing of it
// but its name is ever in an output, so that it may be another one each time.
func secret(flaw, namespace, name string, hosts ...string) (string, error) {
	made := issue(hosts)
	cert, key := made.PEM(), made.KeyPEM()
	switch flaw {
	case "":
	case mismatched:
		key = issue(hosts).KeyPEM()
	case garbage:
		cert = []byte("no certificate")
	default:
		return "", fmt.Errorf("no such flaw of a Secret: %q", flaw)
	}
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`---
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: %s}
type: kubernetes.io/tls
data:
  tls.crt: %s
  tls.key: %s
`, name, namespace, encode(cert), encode(key)), nil
}

// authority returns a ConfigMap with the certificate of an authority, another one
// each time, as with secret.
func authority(namespace, name string) (string, error) {
	cert := certs.Authority("golden").PEM()
	return fmt.Sprintf(`---
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s}
data: {ca.crt: %q}
`, name, namespace, cert), nil
}

// issue returns a self-signed certificate. An Ed25519 key has
// nothing public in it, so that no part of it may show up anywhere.
func issue(hosts []string) *certs.Certificate {
	_, key, _ := ed25519.GenerateKey(nil) // never fails
	return certs.Sign(&x509.Certificate{Subject: pkix.Name{CommonName: "golden"}, DNSNames: hosts}, key, nil)
}
