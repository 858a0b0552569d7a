package ir

import (
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Host is one virtual host of a route table.
type Host struct {
	Domain string `json:"domain"` // exact, *.suffix, or * for everything else
	// Misdirected marks a host that another listener owns: the answer is 421.
	Misdirected bool    `json:"misdirected,omitempty"`
	Rules       []*Rule `json:"rules,omitempty"` // by precedence; the first match wins
	// Filters are for the requests of all rules; nil for none. Where a rule has one of
	// the same kind, that is in force instead, and headers are changed by the rule last.
	// Rewrites are for rules and backends only.
	Filters *Filters `json:"filters,omitempty"`
	// Prerouting comes before a rule is chosen; nil for nothing.
	Prerouting *Prerouting `json:"prerouting,omitempty"`
	// Around are the filters of the listener in front, which are its to tell: the host
	// has to know what it overrules.
	Around *Filters `json:"-"`
	// Divided is the table of the host if that is divided, or may still be so to a proxy; empty otherwise.
	Divided string `json:"-"`
	// Verified says that clients of the listener in front need certificates, so that nothing on the host
	// opens what its table guards by them.
	Verified bool `json:"-"`
	// Sessions says that browsers may send cookies of a Login's sessions to the host, though not all
	// of its rules are guarded by that one. No backend gets such cookies.
	Sessions bool `json:"sessions,omitempty"`
	// Shadows are the rules that never get a request.
	Shadows []Shadow `json:"-"`
}

// Shadow is a rule that never gets a request, since one before it has the same match, or none for
// one path.
type Shadow struct {
	Rule, By Source
	// Path is that path, at which people come back from logging in by Policy, or log out; empty where By
	// takes all.
	Path   string
	Policy object.Name
}

// MaxBody is how many bytes the body of a direct answer may have.
const MaxBody = 64 << 10

// Rule is one match of a route's rule with what happens to the requests it takes.
type Rule struct {
	Source Source `json:"source"`
	Match  Match  `json:"match"`

	// Exactly one of Redirect, Status and Backends says what the answer is.
	Redirect *Redirect         `json:"redirect,omitempty"`
	Status   uint32            `json:"status,omitempty"` // a direct answer, with Body
	Body     string            `json:"body,omitempty"`
	Backends []WeightedBackend `json:"backends,omitempty"`

	Filters  Filters   `json:"filters,omitzero"`
	Timeouts *Timeouts `json:"timeouts,omitempty"`
	Retry    *Retry    `json:"retry,omitempty"`
}

// Source says where a rule comes from. It is unique within a host.
type Source struct {
	Kind        object.Kind `json:"kind"` // of the route
	object.Name             // of the route
	Rule        int         `json:"rule"`            // position in the route
	Title       string      `json:"title,omitempty"` // the rule's name, where it has one
	Match       int         `json:"match"`           // position of the match in the rule
}

// Route names the route.
func (s Source) Route() object.Key { return object.Key{Kind: s.Kind, Name: s.Name} }

// PathKind is how a path is compared.
type PathKind string

// The ways to compare a path.
const (
	PathPrefix PathKind = "Prefix" // by whole path elements
	PathExact  PathKind = "Exact"
	PathRegex  PathKind = "Regex" // RE2, the whole path
	// Of gRPC requests, whose paths are /service/method, the service is compared,
	// and Match.Method is their method. No other requests match.
	Service      PathKind = "Service"      // exact; empty for any
	ServiceRegex PathKind = "ServiceRegex" // RE2, the whole service; empty for any
)

// GRPC reports whether matches of the kind are for gRPC requests.
func (k PathKind) GRPC() bool { return k == Service || k == ServiceRegex }

// Match is a conjunction: all that is set must hold.
type Match struct {
	Path PathMatch `json:"path"`
	// Method is that of HTTP, or with a path of kind Service that of gRPC, which is
	// compared in the way of the service.
	Method string `json:"method,omitempty"`
	// MethodRegex says that a method of gRPC is RE2, though the service is exact.
	MethodRegex bool         `json:"methodRegex,omitempty"`
	Headers     []ValueMatch `json:"headers,omitempty"` // names in lower case
	Query       []ValueMatch `json:"query,omitempty"`
	// Wide says that expressions are not compared, but what is certain without them: of a
	// path, a service or a method its beginning, of a header or a query parameter that it is
	// there. More requests match, in the same place of the order of precedence.
	Wide bool `json:"wide,omitempty"`
}

// PathMatch compares the path without its query.
type PathMatch struct {
	Kind  PathKind `json:"kind"`
	Value string   `json:"value"` // a prefix has no trailing slash, except "/" itself
}

// ValueMatch compares a header or a query parameter.
type ValueMatch struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Regex bool   `json:"regex,omitempty"` // RE2, the whole value
}

// Filters changes requests and answers on their way.
type Filters struct {
	RequestHeaders  *HeaderChanges `json:"requestHeaders,omitempty"`
	ResponseHeaders *HeaderChanges `json:"responseHeaders,omitempty"`
	Rewrite         *Rewrite       `json:"rewrite,omitempty"`
	Mirrors         []Mirror       `json:"mirrors,omitempty"`
	CORS            *CORS          `json:"cors,omitempty"`
	Access          *Access        `json:"access,omitempty"`
	RateLimits      *RateLimits    `json:"rateLimits,omitempty"`
	Auth            *Auth          `json:"auth,omitempty"`
	Traffic         *Traffic       `json:"traffic,omitempty"`
}

// HeaderChanges is applied in the order remove, set, add.
type HeaderChanges struct {
	Set    []Header `json:"set,omitempty"`
	Add    []Header `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// Header is one header field.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Template says that the value has variables, see ParseTemplate. What a request hasn't got is empty.
	Template bool `json:"template,omitempty"`
}

// Rewrite changes where a request seems to go, before the backend sees it.
type Rewrite struct {
	Hostname string       `json:"hostname,omitempty"`
	Path     *PathRewrite `json:"path,omitempty"`
	// HostHeader is a header with the host, and HostPath makes it of the path; empty for neither. A Hostname, of a
	// backend too, comes first.
	HostHeader string       `json:"hostHeader,omitempty"`
	HostPath   *PathRewrite `json:"hostPath,omitempty"`
}

// PathRewrite replaces the whole path, the prefix that matched, or what an expression of RE2 finds.
type PathRewrite struct {
	Full    bool   `json:"full,omitempty"`
	Pattern string `json:"pattern,omitempty"`
	Value   string `json:"value"` // with a Pattern \1 to \9 are its groups, and \0 is all of it
}

// Redirect answers with a Location instead of forwarding. What is empty stays
// as in the request.
type Redirect struct {
	Scheme   string       `json:"scheme,omitempty"`
	Hostname string       `json:"hostname,omitempty"`
	Port     uint16       `json:"port,omitempty"` // 0: none in the Location
	Path     *PathRewrite `json:"path,omitempty"`
	Status   uint32       `json:"status"` // 301, 302, 303, 307 or 308
}

// Mirror sends a copy of a share of the requests to a backend whose answer is
// ignored.
type Mirror struct {
	Backend     BackendKey `json:"backend"`
	Numerator   uint32     `json:"numerator"`
	Denominator uint32     `json:"denominator"`
}

// CORS answers preflight requests and decorates answers (Fetch standard).
type CORS struct {
	AllowOrigins     []string      `json:"allowOrigins,omitempty"` // exact, with a * wildcard label, or *
	AllowMethods     []string      `json:"allowMethods,omitempty"`
	AllowHeaders     []string      `json:"allowHeaders,omitempty"`
	ExposeHeaders    []string      `json:"exposeHeaders,omitempty"`
	MaxAge           time.Duration `json:"maxAge,omitempty"`
	AllowCredentials bool          `json:"allowCredentials,omitempty"`
}

// Timeouts bound a request. Nil fields leave Envoy's default; zero disables.
type Timeouts struct {
	Request *time.Duration `json:"request,omitempty"` // from the request's end to the answer's end, retries included
	Backend *time.Duration `json:"backend,omitempty"` // one attempt
	// Whole is as Request where that is nil, by a policy. It leaves as it is when a request ends as idle.
	Whole *time.Duration `json:"whole,omitempty"`
	Idle  *time.Duration `json:"idle,omitempty"` // in which nothing moves
}

// Retry says when an attempt is repeated.
type Retry struct {
	Attempts    uint32         `json:"attempts"` // retries beyond the first try; 0 means none
	StatusCodes []uint32       `json:"statusCodes,omitempty"`
	Backoff     *time.Duration `json:"backoff,omitempty"` // least time between attempts
}
