package client

// Path is where certificates are asked for, by POST, with the token as bearer.
const Path = "/v1/certificate"

// Request is the body of a request for a certificate.
type Request struct {
	// CSR is a PKCS #10 request in PEM. Its key counts; the names in it don't.
	CSR string `json:"csr"`
}

// Response is the body of an answer with a certificate.
type Response struct {
	Certificate string `json:"certificate"` // chain in PEM, the proxy's own first
	Authorities string `json:"authorities"` // in PEM: what the controller trusts
}

// Problem is the body of a refusal.
type Problem struct {
	Error string `json:"error"`
}
