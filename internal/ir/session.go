package ir

import "time"

// Session keeps a client with the endpoint of a backend that its first request
// went to. Exactly one of Cookie and Header is set.
type Session struct {
	Cookie string `json:"cookie,omitempty"` // its name
	Header string `json:"header,omitempty"` // its name, in lower case
	Path   string `json:"path,omitempty"`   // of the cookie
	// Lifetime is how long the session lasts, at least a second; zero for a cookie
	// that lasts until the browser ends, and for headers.
	Lifetime time.Duration `json:"lifetime,omitempty"`
	Secure   bool          `json:"secure,omitempty"` // the cookie is for HTTPS only
}
