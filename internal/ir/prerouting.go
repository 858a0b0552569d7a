package ir

// Prerouting is what becomes of requests to a host before a rule is chosen for them: services may add the
// headers by which it is.
type Prerouting struct {
	// Closed says that a filter can't do what it is for: no request is served.
	Closed bool `json:"closed,omitempty"`
	// Auth are asked in this order. A request goes on that all of them permit.
	Auth []*Auth `json:"auth,omitempty"`
}
