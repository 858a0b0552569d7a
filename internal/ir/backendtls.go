package ir

import (
	"hash/fnv"
)

// BackendTLS is how a backend is spoken to over TLS. The zero BackendTLS is clear text.
type BackendTLS struct {
	ServerName string `json:"serverName"` // asked for by SNI
	// Names are the names of which the backend's certificate must have one.
	Names       List[CertificateName] `json:"names"`
	Authorities SecretKey             `json:"authorities"` // those to trust
	// ClientCertificate is the certificate to show to the backend; zero for none. It
	// belongs to the Gateway and not to the backend, so that it is no part of a
	// backend's key.
	ClientCertificate SecretKey `json:"clientCertificate,omitzero"`
	// Unverified says that any certificate will do, and that there is nothing in the fields above that says which.
	// Whoever is in between can read and change what is said.
	Unverified bool `json:"unverified,omitempty"`
}

// Equal reports whether two are the same.
func (t BackendTLS) Equal(o BackendTLS) bool { return t == o }

// IsZero reports whether there is no TLS.
func (t BackendTLS) IsZero() bool { return t == BackendTLS{} }

// sum tells one TLS from another.
func (t *BackendTLS) sum() []byte {
	h := fnv.New32a()
	write(h, t.ServerName, t.Authorities.String())
	for n := range t.Names.All() {
		write(h, n.DNS, n.URI)
	}
	if t.Unverified {
		write(h, "unverified")
	}
	return h.Sum(nil)
}

// CertificateName is a subject alternative name. One of the two is set.
type CertificateName struct {
	DNS string `json:"dns,omitempty"` // exact or *.suffix
	URI string `json:"uri,omitempty"`
}
