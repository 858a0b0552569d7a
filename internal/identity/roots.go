package identity

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// The keys of the Secret's data. The first pair signs. The second is there while
// a root is being replaced: it is published before it signs. The
// third is the root that signed before, trusted until the time in the fourth.
const (
	keyCert     = "tls.crt"
	keyKey      = "tls.key"
	keyNextCert = "next.crt"
	keyNextKey  = "next.key"
	keyPrevious = "previous.crt"
	keyUntil    = "previous.until" // RFC 3339
)

// roots are the contents of the Secret.
type roots struct {
	current  *root
	next     *root             // nil most of the time
	previous *x509.Certificate // nil most of the time
	until    time.Time         // when previous may go
}

// periods are how long things last. See Options.
type periods struct {
	root         time.Duration
	distribution time.Duration // from a root's making until it signs
	overlap      time.Duration // from a root's last signature until it may go
}

// advance returns what the roots should be at this time: themselves, if nothing is to
// be done. It makes one step at a time, so that every controller and proxy gets to know
// each of them.
func (r *roots) advance(now time.Time, p periods) (*roots, error) {
	over := r != nil && !now.Before(r.current.cert.NotAfter)
	switch {
	case over && r.next != nil && now.Before(r.next.cert.NotAfter):
		return &roots{current: r.next}, nil
	case r == nil || over:
		// No certificate is valid any more that the old root signed.
		current, err := newRoot(now, p.root)
		if err != nil {
			return nil, err
		}
		return &roots{current: current}, nil
	case r.previous != nil && !now.Before(r.until):
		return &roots{current: r.current, next: r.next}, nil
	case r.next == nil && !now.Before(made(r.current).Add(p.root*2/3)):
		next, err := newRoot(now, p.root)
		if err != nil {
			return nil, err
		}
		return &roots{current: r.current, next: next, previous: r.previous, until: r.until}, nil
	case r.next != nil && r.previous == nil && !now.Before(made(r.next).Add(p.distribution)):
		return &roots{current: r.next, previous: r.current.cert, until: now.Add(p.overlap)}, nil
	default:
		return r, nil
	}
}

// made returns when a root was made.
func made(r *root) time.Time { return r.cert.NotBefore.Add(skew) }

// bundle is all roots to trust, in PEM, beginning with the one that signs.
func (r *roots) bundle() []byte {
	var b bytes.Buffer
	for _, cert := range r.trusted() {
		b.Write(encodeCert(cert))
	}
	return b.Bytes()
}

func (r *roots) trusted() []*x509.Certificate {
	out := []*x509.Certificate{r.current.cert}
	if r.next != nil {
		out = append(out, r.next.cert)
	}
	if r.previous != nil {
		out = append(out, r.previous)
	}
	return out
}

func (r *roots) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, cert := range r.trusted() {
		pool.AddCert(cert)
	}
	return pool
}

func (r *roots) encode() (map[string][]byte, error) {
	key, err := r.current.encodeKey()
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{keyCert: encodeCert(r.current.cert), keyKey: key}
	if r.next != nil {
		if key, err = r.next.encodeKey(); err != nil {
			return nil, err
		}
		data[keyNextCert], data[keyNextKey] = encodeCert(r.next.cert), key
	}
	if r.previous != nil {
		data[keyPrevious] = encodeCert(r.previous)
		data[keyUntil] = []byte(r.until.UTC().Format(time.RFC3339))
	}
	return data, nil
}

// parseRoots reads the Secret's data.
func parseRoots(data map[string][]byte) (*roots, error) {
	r := &roots{}
	var err error
	if r.current, err = parseRoot(data, keyCert, keyKey); err != nil {
		return nil, err
	}
	if len(data[keyNextCert]) > 0 {
		if r.next, err = parseRoot(data, keyNextCert, keyNextKey); err != nil {
			return nil, err
		}
	}
	if len(data[keyPrevious]) > 0 {
		if r.previous, err = parseCert(data[keyPrevious]); err != nil {
			return nil, fmt.Errorf("%s %w", keyPrevious, err)
		}
		if r.until, err = time.Parse(time.RFC3339, string(data[keyUntil])); err != nil {
			return nil, fmt.Errorf("%s is not a time as in 2006-01-02T15:04:05Z", keyUntil)
		}
	}
	return r, nil
}

func parseRoot(data map[string][]byte, certKey, keyKey string) (*root, error) {
	if len(data[certKey]) == 0 {
		return nil, errors.New(certKey + " is missing")
	}
	cert, err := parseCert(data[certKey])
	if err != nil {
		return nil, fmt.Errorf("%s %w", certKey, err)
	}
	key, err := parseKey(data[keyKey], cert)
	if err != nil {
		return nil, fmt.Errorf("%s %w", keyKey, err)
	}
	return &root{cert: cert, key: key}, nil
}
