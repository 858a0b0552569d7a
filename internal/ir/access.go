package ir

import "net/netip"

// Access says whose requests may pass. It is asked before a service that a route names, and
// before all else that answers requests, except for preflights. The zero Access lets
// everybody pass, also where a level around says otherwise.
type Access struct {
	// Authenticated says that a request needs one of the credentials below, whichever; where
	// there are none of them, nobody passes. Those without a valid one are answered with 401.
	Authenticated bool          `json:"authenticated,omitempty"`
	Tokens        []TokenIssuer `json:"tokens,omitempty"`    // sorted by name
	Keys          []APIKeys     `json:"keys,omitempty"`      // sorted by name
	Passwords     []Passwords   `json:"passwords,omitempty"` // sorted by name
	// Certificates are those of clients that are credentials.
	Certificates []ClientCertificates `json:"certificates,omitempty"` // sorted by name
	// Login has those log in who have no other credentials; nil for nobody.
	Login      *Login            `json:"login,omitempty"`
	Conditions []AccessCondition `json:"conditions,omitempty"` // sorted by name; all must hold, or the answer is 403
	// Unauthenticated and Forbidden are what those are told who have no valid credentials, or
	// don't meet a condition; nil for a plain 401 and 403. Calls of gRPC get the codes of those
	// in any case.
	Unauthenticated *AccessAnswer `json:"unauthenticated,omitempty"`
	Forbidden       *AccessAnswer `json:"forbidden,omitempty"`
	// Hidden are headers, in lower case and sorted, that only the proxy may set: what
	// clients send under these names is removed, whoever they are.
	Hidden []string `json:"hidden,omitempty"`
}

// IsOpen reports whether everybody may pass, and nothing is done to requests.
func (a *Access) IsOpen() bool {
	return !a.Authenticated && len(a.Tokens)+len(a.Keys)+len(a.Passwords)+len(a.Certificates)+len(a.Conditions)+len(a.Hidden) == 0 && a.Login == nil
}

// AccessAnswer is what those are told who may not pass. Nothing of their requests is in it.
type AccessAnswer struct {
	Status int `json:"status"` // 400 to 499, or a redirect's
	// Headers are added, in lower case and sorted by name. They have no control characters.
	Headers []Header `json:"headers,omitempty"`
	Body    string   `json:"body,omitempty"` // empty for none
}

// TokenIssuer is whose JSON Web Tokens are credentials (RFC 7519).
type TokenIssuer struct {
	Name      string   `json:"name"` // unique among the issuers
	Issuer    string   `json:"issuer"`
	Audiences []string `json:"audiences,omitempty"` // one of them must be among the token's; none for any
	// JWKS are the public keys that sign (RFC 7517), as JSON.
	JWKS string             `json:"jwks"`
	From []CredentialSource `json:"from"`
	// Headers tell the backend claims of the token. Their names are among those hidden.
	Headers []ClaimHeader `json:"headers,omitempty"`
	// Hide takes a token that counts away, with all that is in its place.
	Hide bool `json:"hide,omitempty"`
}

// ClaimHeader is a header with the value of a claim.
type ClaimHeader struct {
	Claim  []string `json:"claim"`  // the path to it
	Header string   `json:"header"` // in lower case
}

// CredentialSource is where in a request a credential is. Exactly one of the three is set.
type CredentialSource struct {
	Header string `json:"header,omitempty"` // in lower case
	Prefix string `json:"prefix,omitempty"` // before it in the header, such as "Bearer "
	Query  string `json:"query,omitempty"`
	Cookie string `json:"cookie,omitempty"`
}

// APIKeys are keys that are credentials, as nobody can read them.
type APIKeys struct {
	Name string             `json:"name"`
	From []CredentialSource `json:"from"`
	Salt string             `json:"salt"`
	Keys []HashedKey        `json:"keys"` // sorted by sum, each sum once
	// Header tells the backend whose key it is, in lower case; empty for not at all. It is
	// among those hidden.
	Header string `json:"header,omitempty"`
	// Hide takes a key that counts away, as that of TokenIssuer.
	Hide bool `json:"hide,omitempty"`
}

// HashedKey is the key of a client.
type HashedKey struct {
	Sum    Sensitive `json:"sum"` // SHA-256 of salt and key, in hexadecimal digits
	Client string    `json:"client"`
}

// Passwords are names and passwords that are credentials, by HTTP's Basic scheme (RFC 7617).
type Passwords struct {
	Name  string           `json:"name"`
	Realm string           `json:"realm"`
	Salt  string           `json:"salt"`
	Users []HashedPassword `json:"users"` // sorted by name, each name once
	// Header tells the backend the user's name, as that of APIKeys.
	Header string `json:"header,omitempty"`
	// Hide takes a password that counts away, as that of TokenIssuer.
	Hide bool `json:"hide,omitempty"`
}

// HashedPassword is the password of a user.
type HashedPassword struct {
	User string `json:"user"`
	// Sum is SHA-256 of salt and of the password's SHA-1 in base 64, in hexadecimal digits.
	Sum Sensitive `json:"sum"`
}

// ClientCertificates are certificates that the listener has verified, of clients that one of the
// names is of; with no names any such certificate. Where a listener verifies none there are none.
type ClientCertificates struct {
	Name string `json:"name"`
	// DNS are names of hosts in lower case. An asterisk at the beginning is for one label.
	DNS  []string `json:"dns,omitempty"`
	URIs []string `json:"uris,omitempty"`
	// Header tells the backend the name, as that of APIKeys.
	Header string `json:"header,omitempty"`
}

// AccessCondition is a condition that a request meets, whatever its credentials are. All
// that is set must hold.
type AccessCondition struct {
	Name string `json:"name"`
	// Never says that no request meets it.
	Never bool `json:"never,omitempty"`
	// Allow are the addresses of clients that pass; none for all. Deny are those that don't.
	Allow []netip.Prefix `json:"allow,omitempty"`
	Deny  []netip.Prefix `json:"deny,omitempty"`
	// Claims must all be in the token, each with one of its values.
	Claims []ClaimMatch `json:"claims,omitempty"`
	// Clients are the clients and users of which the request must be one's; none for any.
	Clients []string `json:"clients,omitempty"`
	// Methods are those of which the request's must be one; none for any.
	Methods []string `json:"methods,omitempty"`
	// Headers must all be in the request, once each, with one of their values.
	Headers []HeaderValues `json:"headers,omitempty"` // sorted by name
	// CSRF refuses what pages of other origins than the host's own and these have browsers send; nil for nothing.
	CSRF *CSRF `json:"csrf,omitempty"`
	// When is an expression, see package expression, that is true of the requests that must
	// meet the condition; empty for all. Those of which it can't be told must too.
	When string `json:"when,omitempty"`
	// External is a service that must permit the request, which is asked about those that meet
	// all other conditions; nil for none.
	External *External `json:"external,omitempty"`
}

// CSRF says which pages may have browsers send requests that change something.
type CSRF struct {
	Origins []string `json:"origins,omitempty"` // beside the host's own
}

// External is a service that policies have asked.
type External struct {
	Auth
	// Open lets requests pass of which the service doesn't say anything: it can't be reached, takes
	// too long, or fails.
	Open bool `json:"open,omitempty"`
}

// HeaderValues is a header with the values of which it must have one.
type HeaderValues struct {
	Name   string   `json:"name"` // in lower case
	Values []string `json:"values"`
}

// ClaimMatch is a claim that a token has with one of some values, or with a list that has
// one of them.
type ClaimMatch struct {
	Claim  []string `json:"claim"` // the path to it
	Values []string `json:"values"`
}
