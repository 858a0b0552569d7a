package configserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// Client is whoever has been let in.
type Client struct {
	Name string
	Rights
}

// Equal reports whether both are the same, with the same rights.
func (c Client) Equal(o Client) bool {
	return c.Name == o.Name && c.Secrets == o.Secrets && c.Statuses == o.Statuses &&
		(c.Namespaces == nil) == (o.Namespaces == nil) && slices.Equal(c.Namespaces, o.Namespaces)
}

// clientsFile is the content of a file that says which clients there are.
type clientsFile struct {
	Clients []clientEntry `json:"clients"`
}

// clientEntry is a client that is known by a token or a certificate.
type clientEntry struct {
	Name string `json:"name"`
	// Token is its bearer token, and Certificate the first URI of its certificate, else the first DNS name, else the common
	// name: one of them.
	Token       string   `json:"token,omitempty"`
	Certificate string   `json:"certificate,omitempty"`
	Namespaces  []string `json:"namespaces,omitempty"` // none means all
	Secrets     bool     `json:"secrets,omitempty"`
	Statuses    bool     `json:"statuses,omitempty"`
}

func (c clientEntry) client() Client {
	return Client{c.Name, Rights{Namespaces: c.Namespaces, Secrets: c.Secrets, Statuses: c.Statuses}}
}

// clients reads the file of clients.
func (a Access) clients() ([]clientEntry, error) {
	text, err := readBounded(a.ClientsFile)
	if err != nil {
		return nil, err
	}
	var f clientsFile
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return nil, errors.New("it is not a list of clients: see the guide of config servers") // the error would have tokens in it
	}
	if len(f.Clients) == 0 {
		return nil, errors.New("it has no client: name at least one under clients")
	}
	for i, c := range f.Clients {
		at := fmt.Sprintf("clients[%d]", i)
		switch {
		case c.Name == "":
			return nil, fmt.Errorf("%s.name is empty", at)
		case (c.Token == "") == (c.Certificate == ""):
			return nil, fmt.Errorf("%s (%s): a client is known by a token or a certificate: name one of them", at, c.Name)
		}
		if c.Namespaces != nil && len(c.Namespaces) == 0 {
			return nil, fmt.Errorf("%s (%s): namespaces is empty: leave it out for all, or name some", at, c.Name)
		}
		if c.Certificate != "" && !a.Certificate {
			return nil, fmt.Errorf("%s (%s): it is known by a certificate, and no authority of certificates is known: name one with --client-ca", at, c.Name)
		}
		for _, o := range f.Clients[:i] {
			switch {
			case o.Name == c.Name:
				return nil, fmt.Errorf("%s: there are two clients of the name %s", at, c.Name)
			case o.Token == c.Token && o.Certificate == c.Certificate:
				return nil, fmt.Errorf("%s (%s): it is known by the same as %s", at, c.Name, o.Name)
			case o.Statuses && c.Statuses && overlap(o.Namespaces, c.Namespaces):
				return nil, fmt.Errorf("%s (%s): it and %s would tell statuses of the same objects; have namespaces differ, or leave out statuses of one", at, c.Name, o.Name)
			}
		}
	}
	return f.Clients, nil
}

// Wants reports whether any client sees Secrets, and whether any says what has become of objects.
func (a Access) Wants() (secrets, statuses bool) {
	secrets, statuses = a.Rights.Secrets, a.Rights.Statuses
	if a.ClientsFile != "" {
		list, _ := a.clients()
		for _, c := range list {
			secrets, statuses = secrets || c.Secrets, statuses || c.Statuses
		}
	}
	return secrets, statuses
}

// overlap reports whether two lists of namespaces have one in common; an empty one has all.
func overlap(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(ns string) bool { return slices.Contains(b, ns) })
}

// known finds the client of a certificate or a token.
func (a Access) known(certificate *x509.Certificate, token string) (c Client, ok bool, err error) {
	list, err := a.clients()
	if err != nil {
		return Client{}, false, err
	}
	sum := sha256.Sum256([]byte(token))
	for _, e := range list {
		of := sha256.Sum256([]byte(e.Token))
		byToken := token != "" && e.Token != "" && subtle.ConstantTimeCompare(of[:], sum[:]) == 1
		byCertificate := certificate != nil && e.Certificate != "" && nameOf(certificate) == e.Certificate
		if byToken || byCertificate {
			return e.client(), true, nil
		}
	}
	return Client{}, false, nil
}

// readBounded reads a file that is not larger than those of clients and tokens are.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxTokens {
		return nil, fmt.Errorf("it has more than %d bytes", maxTokens)
	}
	return os.ReadFile(path)
}
