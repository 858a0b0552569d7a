//go:build linux

package e2e

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"
)

// expanded evaluates a template expression of a case named "direct" and decodes
// its documents into objects, in order.
func expanded(t *testing.T, expression string, objects ...any) {
	t.Helper()
	text, err := newBindings(t, "direct", "127.0.0.1").expand("objects.yaml", expression)
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.Split(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if len(docs) != len(objects) {
		t.Fatalf("%s makes %d documents, want %d", expression, len(docs), len(objects))
	}
	for i, doc := range docs {
		if err := yaml.UnmarshalStrict([]byte(doc), objects[i]); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
	}
}

// TestBackendTemplates protects the Services of all kinds: their ports, and that
// the backend behind is of the kind.
func TestBackendTemplates(t *testing.T) {
	for _, tc := range []struct {
		expression string
		port       int32
		protocol   corev1.Protocol
		step       string // sent to the backend itself
	}{
		{`{{backends "x1"}}`, 8080, corev1.ProtocolTCP, `{request: "GET http://direct.test:PORT/", expect: {backend: x1}}`},
		{`{{grpcBackends "x1"}}`, 9000, corev1.ProtocolTCP, `{grpc: a.B/C, port: PORT, expect: {backend: x1}}`},
		{`{{tcpBackends "x1"}}`, 9000, corev1.ProtocolTCP, `{tcp: PORT, expect: {backend: x1}}`},
		{`{{udpBackends "x1"}}`, 5353, corev1.ProtocolUDP, `{udp: PORT, expect: {backend: x1}}`},
		{`{{tlsBackends "x1"}}`, 8443, corev1.ProtocolTCP, `{tls: PORT, expect: {backend: x1, certificate: x1.direct.test}}`},
		{`{{httpsBackends "a.example" "x1"}}`, 8443, corev1.ProtocolTCP, `{request: "GET https://direct.test:PORT/", http2: true, expect: {backend: x1, certificate: a.example, tls: {peer: "", alpn: h2}}}`},
		{`{{mtlsBackends "a.example" "x1"}}`, 8443, corev1.ProtocolTCP, `{request: "GET https://direct.test:PORT/", clientCertificate: joe, expect: {backend: x1, certificate: a.example, tls: {peer: CN=joe}}}`},
		{`{{mtlsBackends "a.example" "x1"}}`, 8443, corev1.ProtocolTCP, `{request: "GET https://direct.test:PORT/", expect: {failure: true}}`},
	} {
		t.Run(tc.expression, func(t *testing.T) {
			var service corev1.Service
			var slice discoveryv1.EndpointSlice
			expanded(t, tc.expression, &service, &slice)
			served, at := service.Spec.Ports[0], slice.Ports[0]
			if service.Name != "x1" || service.Namespace != "direct" || slice.Labels["kubernetes.io/service-name"] != "x1" {
				t.Errorf("Service %s/%s, slice of %s", service.Namespace, service.Name, slice.Labels)
			}
			if served.Port != tc.port || served.Protocol != tc.protocol || *at.Protocol != tc.protocol || *at.Name != served.Name || *at.Port != served.TargetPort.IntVal {
				t.Errorf("ports: %+v, %+v", served, at)
			}
			port := strconv.Itoa(int(*at.Port) - portOffset) // calls add it
			for _, s := range parseSteps(t, "127.0.0.1", "- "+strings.ReplaceAll(tc.step, "PORT", port)) {
				if err := s.try(t.Context(), "template"); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestBackendIdentity protects the second name of HTTPS backends.
func TestBackendIdentity(t *testing.T) {
	s, err := httpsBackend.start("x1", "a.example")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", s.Addresses()[0].String(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // only its names matter
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	uris := conn.ConnectionState().PeerCertificates[0].URIs
	if len(uris) != 1 || uris[0].String() != "spiffe://e2e/a.example" {
		t.Errorf("URIs: %v", uris)
	}
}

// TestCertificateTemplates protects who has signed what, and with which keys.
func TestCertificateTemplates(t *testing.T) {
	var server, rsaServer, client corev1.Secret
	var ca, clientCA, otherCA corev1.ConfigMap
	expanded(t, `{{secret "s" "a.example"}}{{rsaSecret "r" "a.example"}}{{clientSecret "c" "joe"}}{{ca "ca"}}{{clientCA "cca"}}{{otherCA "oca"}}`,
		&server, &rsaServer, &client, &ca, &clientCA, &otherCA)
	leaf := func(s corev1.Secret) *x509.Certificate {
		pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
		if err != nil || s.Type != corev1.SecretTypeTLS {
			t.Fatalf("%s: %s, %v", s.Name, s.Type, err)
		}
		return pair.Leaf
	}
	authorities := map[string]*x509.CertPool{}
	for _, c := range []corev1.ConfigMap{ca, clientCA, otherCA} {
		authorities[c.Name] = x509.NewCertPool()
		block, rest := pem.Decode([]byte(c.Data["ca.crt"]))
		if block == nil || len(rest) > 0 || !authorities[c.Name].AppendCertsFromPEM([]byte(c.Data["ca.crt"])) {
			t.Fatalf("%s: %q", c.Name, c.Data)
		}
	}
	for _, tc := range []struct {
		of    corev1.Secret
		by    string
		usage x509.ExtKeyUsage
	}{
		{server, "ca", x509.ExtKeyUsageServerAuth},
		{rsaServer, "ca", x509.ExtKeyUsageServerAuth},
		{client, "cca", x509.ExtKeyUsageClientAuth},
	} {
		for name, pool := range authorities {
			_, err := leaf(tc.of).Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{tc.usage}})
			if (err == nil) != (name == tc.by) {
				t.Errorf("%s by %s: %v", tc.of.Name, name, err)
			}
		}
	}
	_, serverRSA := leaf(server).PublicKey.(*rsa.PublicKey)
	_, rsaRSA := leaf(rsaServer).PublicKey.(*rsa.PublicKey)
	if serverRSA || !rsaRSA {
		t.Errorf("RSA keys: %t of secret, %t of rsaSecret", serverRSA, rsaRSA)
	}
	if !slices.Equal(leaf(rsaServer).DNSNames, []string{"a.example"}) || leaf(client).Subject.String() != "CN=joe" {
		t.Errorf("names: %v, %s", leaf(rsaServer).DNSNames, leaf(client).Subject)
	}
}
