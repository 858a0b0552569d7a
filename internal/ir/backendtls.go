package ir

// BackendTLS is how a backend is spoken to over TLS.
type BackendTLS struct {
	ServerName string `json:"serverName"` // asked for by SNI
	// Names are the names of which the backend's certificate must have one.
	Names       []CertificateName `json:"names"`
	Authorities string            `json:"authorities"` // the name of the Secret with those to trust
	// ClientCertificate is the name of the Secret with the certificate to show to the
	// backend; empty for none. It belongs to the Gateway and not to the backend.
	ClientCertificate string `json:"clientCertificate,omitempty"`
}

// CertificateName is a subject alternative name. One of the two is set.
type CertificateName struct {
	DNS string `json:"dns,omitempty"` // exact or *.suffix
	URI string `json:"uri,omitempty"`
}
