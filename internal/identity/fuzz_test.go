package identity

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/identity/client"
	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// maxRefusal is how much a client is told of why it is refused.
const maxRefusal = 300

// FuzzToken protects the API server: only a token that may be valid costs a request to it,
// and what is said of another quotes nothing of it.
func FuzzToken(f *testing.F) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	encode := base64.RawURLEncoding.EncodeToString
	for _, claims := range []string{
		`{"aud":"gatehouse.dev","exp":1795348801}`, `{"aud":["gatehouse.dev","other"],"exp":1e300}`, `{"aud":["gatehouse.dev"],"exp":-1}`,
		`{"aud":{},"exp":0}`, `{"aud":"other"}`, `{"exp":"soon"}`, `null`, `[]`, `{"aud":"gatehouse.dev","exp":1.5e18}`,
	} {
		f.Add("e30." + encode([]byte(claims)) + ".c2ln")
	}
	f.Add("a.b")
	f.Add("")
	f.Fuzz(func(t *testing.T, token string) {
		no := inspect(token, now)
		if no != nil {
			messagetest.Check(t, no.text, maxRefusal)
			if no.reason == "" || no.status < 400 {
				t.Fatalf("%+v", no)
			}
			return
		}
		parts := strings.Split(token, ".")
		raw, err := base64.RawURLEncoding.DecodeString(parts[1])
		if len(parts) != 3 || err != nil {
			t.Fatalf("%q is accepted", token)
		}
		var c struct{ Exp float64 }
		if err := json.Unmarshal(raw, &c); err != nil || c.Exp <= float64(now.Unix()) {
			t.Fatalf("%s is accepted: %v", raw, err)
		}
		if !bytes.Contains(raw, []byte(`gatehouse`)) && !bytes.Contains(raw, []byte(`\u`)) {
			t.Fatalf("%s is accepted", raw)
		}
	})
}

// FuzzRequest protects the controller from what a pod sends to get a certificate: the key
// of a request that is signed with it, and of no other.
func FuzzRequest(f *testing.F) {
	root, err := newRoot(time.Now(), time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, root.key)
	if err != nil {
		f.Fatal(err)
	}
	for _, der := range [][]byte{der, der[:20]} {
		text, err := json.Marshal(client.Request{CSR: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"csr":5}`))
	f.Add([]byte(`{"csr":"-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"} x`))
	f.Add(bytes.Repeat([]byte("["), maxBody+1))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := httptest.NewRequest("POST", "/", bytes.NewReader(text))
		got, no := readKey(httptest.NewRecorder(), r)
		if (got == nil) == (no == nil) {
			t.Fatalf("a key of type %T, and the refusal %v", got, no)
		}
		if no != nil {
			messagetest.Check(t, no.text, maxRefusal)
			return
		}
		if _, err := root.sign(&x509.Certificate{}, time.Now(), time.Minute, got); err != nil {
			t.Fatalf("the key can't be signed: %v", err)
		}
	})
}

// FuzzRoots protects the keys of the authority: what the Secret says is read whole or
// refused, and written it is what it was.
func FuzzRoots(f *testing.F) {
	now := time.Now()
	current, err := newRoot(now, time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	data, err := (&roots{current: current, next: current, previous: current.cert, until: now}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[keyCert], data[keyKey], []byte(nil), []byte(nil), []byte(nil), []byte(nil))
	f.Add(data[keyCert], data[keyKey], data[keyNextCert], data[keyNextKey], data[keyPrevious], data[keyUntil])
	f.Add(data[keyKey], data[keyCert], []byte("\xff"), []byte("x"), data[keyPrevious], []byte("soon"))
	f.Fuzz(func(t *testing.T, cert, key, nextCert, nextKey, previous, until []byte) {
		r, err := parseRoots(map[string][]byte{
			keyCert: cert, keyKey: key, keyNextCert: nextCert, keyNextKey: nextKey, keyPrevious: previous, keyUntil: until,
		})
		if err != nil {
			messagetest.Error(t, err, 1024)
			if r != nil {
				t.Fatal("what is refused is returned")
			}
			if first, _, _ := strings.Cut(err.Error(), " "); !strings.Contains(first, ".") {
				t.Fatalf("the error names no field: %v", err)
			}
			return
		}
		written, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseRoots(written)
		if err != nil || !bytes.Equal(again.bundle(), r.bundle()) {
			t.Fatalf("what is written is read as others: %v", err)
		}
		if bytes.Contains(r.bundle(), []byte("PRIVATE")) {
			t.Fatal("a private key is published")
		}
		if _, err := r.advance(now, periods{root: time.Hour, distribution: time.Minute, overlap: time.Minute}); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzPeer protects Gateways from each other: a certificate's name is that of one pod of
// one Gateway, or of one controller, or of nobody.
func FuzzPeer(f *testing.F) {
	gateway := object.Name{Namespace: "ns", Name: "web"}
	for _, seed := range []string{
		memberURI(gateway, Proxy, "web-0").String(), memberURI(gateway, Limits, "web-0").String(), controllerURI("gatehouse-0").String(), "", "spiffe://gatehouse.dev/", "spiffe://other/controller/a",
		"spiffe://gatehouse.dev/ns/a%2Fb/gateway/c/pod/d", "spiffe://user@gatehouse.dev/controller/a", "spiffe://gatehouse.dev/ns/a/gateway/b/pod/c?d#e",
		"spiffe://gatehouse.dev/controller/a#",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			return // x509 refuses the certificate
		}
		segments, err := segmentsOf(&x509.Certificate{URIs: []*url.URL{u}})
		if err != nil {
			messagetest.Error(t, err, 3*len(text)+100)
			return
		}
		for _, s := range segments {
			if s == "" || strings.Contains(s, "/") {
				t.Fatalf("%q is read as %q", text, segments)
			}
		}
		if again := spiffe(segments...).String(); again != u.String() {
			t.Fatalf("%q is read as the name %q", u, again)
		}
	})
}
