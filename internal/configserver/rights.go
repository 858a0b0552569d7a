package configserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Rights say what a client may see.
type Rights struct {
	// Namespaces are those whose objects it may see, and the Namespace objects of the same
	// names; nil is all. What is in no namespace may be seen by everybody.
	Namespaces []string
	// Secrets lets it see Secrets.
	Secrets bool
	// Statuses lets it say what has become of objects that it sees. Where it sees those of some namespaces only, it says
	// nothing of what is in none.
	Statuses bool
}

// tells reports whether a client says what has become of an object.
func (r Rights) tells(k object.Kind, n object.Name) bool {
	return r.Statuses && r.sees(k, n) && (n.Namespace != "" || r.Namespaces == nil)
}

func (r Rights) sees(k object.Kind, n object.Name) bool {
	if k == kind.Secret && !r.Secrets {
		return false
	}
	in := n.Namespace
	if k == kind.Namespace {
		in = n.Name
	}
	return r.Namespaces == nil || in == "" || slices.Contains(r.Namespaces, in)
}

// Access says who may connect, and what each may see.
type Access struct {
	// Anybody lets everybody in who can connect.
	Anybody bool
	// TokenFile has tokens, one a line, any of which lets in; empty for none.
	TokenFile string
	// Certificate lets in who shows a certificate of the authority that the TLS configuration trusts.
	Certificate bool
	// Rights are those of whoever is let in by these.
	Rights Rights
	// ClientsFile, if there is one, says alone who is let in: its clients, each with rights of its own.
	ClientsFile string
}

// maxTokens bounds the files of tokens and of clients, in bytes.
const maxTokens = 1 << 20

// Check reports what is wrong with the files of tokens and of clients.
func (a Access) Check() error {
	if a.ClientsFile != "" {
		if _, err := a.clients(); err != nil {
			return fmt.Errorf("%s: %w", a.ClientsFile, err)
		}
	}
	if a.TokenFile != "" {
		if _, err := a.tokens(); err != nil {
			return fmt.Errorf("%s: %w", a.TokenFile, err)
		}
	}
	return nil
}

// tokens are the hashes of those that let in. The file is read each time, so that one that is replaced holds at once.
func (a Access) tokens() (sums [][sha256.Size]byte, err error) {
	text, err := readBounded(a.TokenFile)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			sums = append(sums, sha256.Sum256([]byte(line)))
		}
	}
	if len(sums) == 0 {
		return nil, errors.New("it has no token: write one into it, a line each")
	}
	return sums, nil
}

// admit says who a client is and what it may see. The certificate has been verified.
func (a Access) admit(certificate *x509.Certificate, token string) (Client, error) {
	if a.ClientsFile != "" {
		c, known, err := a.known(certificate, token)
		switch {
		case err != nil:
			return Client{}, status.Error(codes.Unavailable, "the config server can't read its clients")
		case !known:
			return Client{}, status.Error(codes.Unauthenticated, "this is none of the config server's clients: show a token or a certificate of one")
		}
		return c, nil
	}
	if token != "" && a.TokenFile != "" {
		sums, err := a.tokens()
		if err != nil {
			return Client{}, status.Error(codes.Unavailable, "the config server can't read its tokens")
		}
		sum, known := sha256.Sum256([]byte(token)), 0
		for _, of := range sums {
			known |= subtle.ConstantTimeCompare(of[:], sum[:])
		}
		if known == 0 {
			return Client{}, status.Error(codes.Unauthenticated, "the token is not one of the config server's")
		}
		return Client{"token " + hex.EncodeToString(sum[:4]), a.Rights}, nil
	}
	if certificate != nil && a.Certificate {
		return Client{nameOf(certificate), a.Rights}, nil
	}
	if a.Anybody {
		return Client{"anybody", a.Rights}, nil
	}
	return Client{}, status.Error(codes.Unauthenticated, a.lacking().Error())
}

// lacking says what a client is to show.
func (a Access) lacking() error {
	switch {
	case a.TokenFile != "" && a.Certificate:
		return errors.New("the config server wants a bearer token, or a client certificate of its authority")
	case a.TokenFile != "":
		return errors.New("the config server wants a bearer token")
	}
	return errors.New("the config server wants a client certificate of its authority")
}

// nameOf is what a certificate calls its owner.
func nameOf(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	}
	return c.Subject.CommonName
}
