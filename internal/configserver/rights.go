package configserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
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
}

// maxTokens bounds the file of tokens, in bytes.
const maxTokens = 1 << 20

// CheckTokens reports what is wrong with the file of tokens.
func (a Access) CheckTokens() error {
	_, err := a.tokens()
	return err
}

// tokens are the hashes of those that let in. The file is read each time, so that one that is replaced holds at once.
func (a Access) tokens() (sums [][sha256.Size]byte, err error) {
	info, err := os.Stat(a.TokenFile)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxTokens {
		return nil, fmt.Errorf("%s has more than %d bytes", a.TokenFile, maxTokens)
	}
	text, err := os.ReadFile(a.TokenFile)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			sums = append(sums, sha256.Sum256([]byte(line)))
		}
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("%s has no token: write one into it, a line each", a.TokenFile)
	}
	return sums, nil
}

// admit says who a client is and what it may see. The certificate has been verified.
func (a Access) admit(certificate *x509.Certificate, token string) (name string, r Rights, err error) {
	if token != "" && a.TokenFile != "" {
		sums, err := a.tokens()
		if err != nil {
			return "", Rights{}, status.Error(codes.Unavailable, "the config server can't read its tokens")
		}
		sum, known := sha256.Sum256([]byte(token)), 0
		for _, of := range sums {
			known |= subtle.ConstantTimeCompare(of[:], sum[:])
		}
		if known == 0 {
			return "", Rights{}, status.Error(codes.Unauthenticated, "the token is not one of the config server's")
		}
		return "token " + hex.EncodeToString(sum[:4]), a.Rights, nil
	}
	if certificate != nil && a.Certificate {
		return nameOf(certificate), a.Rights, nil
	}
	if a.Anybody {
		return "anybody", a.Rights, nil
	}
	return "", Rights{}, status.Error(codes.Unauthenticated, a.lacking().Error())
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
