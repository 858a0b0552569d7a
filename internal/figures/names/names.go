// Package names has the names by which proxies report figures: of what configures Envoy to
// count, of what has Envoy report, and of what adds it up.
package names

// Prefix begins the names of the statistics that are reported to the control plane.
const Prefix = "gatehouse_figures"

// These are the statistics, after the prefix and a dot.
const (
	Requests = "requests"
	Latency  = "latency"
	// Received and Sent are bytes of requests and of answers.
	Received = "received"
	Sent     = "sent"
)

// These are their tags.
const (
	Listener = "listener"
	Route    = "route"
	Backend  = "backend"
	Code     = "code"
	Flags    = "flags"
	Attempts = "attempts" // at a backend
)
