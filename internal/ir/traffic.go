package ir

import (
	"reflect"
	"time"
)

// Traffic is what policies say of how requests and answers pass. What is nil is not said. The zero
// value says nothing.
type Traffic struct {
	// MaxBodySize is how many bytes the body of a request may have; 0 for any.
	MaxBodySize *uint64 `json:"maxBodySize,omitempty"`
	// Buffering is how large a body may be that is held back until it is whole; 0 holds none back.
	Buffering *uint32 `json:"buffering,omitempty"`
	// Timeout bounds whole requests, and IdleTimeout the time in which nothing moves in them; 0 is no limit.
	Timeout     *time.Duration `json:"timeout,omitempty"`
	IdleTimeout *time.Duration `json:"idleTimeout,omitempty"`
	// Retry says when an attempt is repeated; the zero value is never, and nil what a host does by itself.
	Retry *Retry `json:"retry,omitempty"`
	// RequestBandwidth and ResponseBandwidth are how many bytes a second pass; 0 for any.
	RequestBandwidth  *uint64 `json:"requestBandwidth,omitempty"`
	ResponseBandwidth *uint64 `json:"responseBandwidth,omitempty"`
	// AdmissionControl turns requests away from backends that fail; the zero value none.
	AdmissionControl *AdmissionControl `json:"admissionControl,omitempty"`
	// Faults are made for a share of the requests; the zero value is none.
	Faults *Faults `json:"faults,omitempty"`
	// Compression compresses answers; the zero value does not.
	Compression *Compression `json:"compression,omitempty"`
	// Headers are changed in all answers.
	Headers *AnswerHeaders `json:"headers,omitempty"`
	// StrictTransportSecurity is the value of that header; empty for none. It is for HTTPS only, see Over.
	StrictTransportSecurity *string `json:"strictTransportSecurity,omitempty"`
	// SecurityHeaders are set in answers that don't have them.
	SecurityHeaders *SecurityHeaders `json:"securityHeaders,omitempty"`
	// ErrorPages are the bodies of errors; the zero value is none.
	ErrorPages *ErrorPages `json:"errorPages,omitempty"`
	// LoadBalancing is how an endpoint is chosen; the zero value is the default.
	LoadBalancing *LoadBalancing `json:"loadBalancing,omitempty"`
	// ConnectTimeout and the following are those of BackendSettings.
	ConnectTimeout   *time.Duration    `json:"connectTimeout,omitempty"`
	Connections      *Connections      `json:"connections,omitempty"`
	CircuitBreaker   *CircuitBreaker   `json:"circuitBreaker,omitempty"`
	OutlierDetection *OutlierDetection `json:"outlierDetection,omitempty"`
	HealthCheck      *HealthCheck      `json:"healthCheck,omitempty"`
	ClusterIP        *bool             `json:"clusterIP,omitempty"`
	Clusters         *Clusters         `json:"clusters,omitempty"`
	// RetryBudget limits retries of backends that have no budget of their own.
	RetryBudget *RetryBudget `json:"retryBudget,omitempty"`
}

// Equal reports whether both say the same. Nil is not the same as to say nothing.
func (t *Traffic) Equal(o *Traffic) bool { return t == o || reflect.DeepEqual(t, o) }

// Over returns what is said to clients that come by HTTPS, or by HTTP.
func (t *Traffic) Over(https bool) *Traffic {
	if t == nil {
		return nil
	}
	out := *t
	if !https {
		out.StrictTransportSecurity = nil
		return &out
	}
	if l := t.LoadBalancing; l != nil && l.Hash != nil && l.Hash.Cookie != "" {
		balancing, hash := *l, *l.Hash
		hash.Secure, balancing.Hash, out.LoadBalancing = true, &hash, &balancing
	}
	return &out
}

// Under returns the rule with what policies say of it where it says nothing itself.
func (r *Rule) Under(t *Traffic) *Rule {
	if t == nil || t.Timeout == nil && t.IdleTimeout == nil && t.Retry == nil {
		return r
	}
	out := *r
	if out.Retry == nil {
		out.Retry = t.Retry
	}
	if t.Timeout != nil || t.IdleTimeout != nil {
		timeouts := Timeouts{}
		if r.Timeouts != nil {
			timeouts = *r.Timeouts
		}
		if timeouts.Request == nil {
			timeouts.Whole = t.Timeout
		}
		timeouts.Idle = t.IdleTimeout
		out.Timeouts = &timeouts
	}
	return &out
}

// AnswerHeaders changes headers of answers: of each it removes, sets, sets if absent or adds.
type AnswerHeaders struct {
	HeaderChanges
	SetIfAbsent []Header `json:"setIfAbsent,omitempty"`
}

// SecurityHeaders are set in answers that don't have them.
type SecurityHeaders struct {
	Set []Header `json:"set,omitempty"`
}

// ErrorPages are the bodies of errors: the first one that fits is taken.
type ErrorPages struct {
	Pages []ErrorPage `json:"pages,omitempty"`
}

// ErrorPage is the body of answers.
type ErrorPage struct {
	// Statuses are such as 404 or 5xx.
	Statuses    []string `json:"statuses"`
	Body        string   `json:"body"`
	ContentType string   `json:"contentType"`
	// Own says that answers of backends stay as they are.
	Own bool `json:"own,omitempty"`
	// Asked is what the policy refers to where a backend is asked for the page, until that is followed: then Backend is it.
	Asked   *PageReference `json:"asked,omitempty"`
	Backend BackendKey     `json:"backend,omitzero"`
}

// PageReference is what a policy refers to.
type PageReference struct {
	From      string `json:"from"` // the policy's namespace
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Port      int32  `json:"port"` // 0 for none
}

// Backends yields the backends that are asked for pages.
func (t *Traffic) Backends(yield func(BackendKey)) {
	if t == nil || t.ErrorPages == nil {
		return
	}
	for i := range t.ErrorPages.Pages {
		if b := t.ErrorPages.Pages[i].Backend; !b.IsZero() {
			yield(b)
		}
	}
}

// Balancer is how endpoints of a backend are chosen.
type Balancer string

// The balancers. The zero value takes the one of two endpoints that has fewer requests under way.
const (
	LeastRequest   Balancer = ""
	RoundRobin     Balancer = "RoundRobin"
	Random         Balancer = "Random"
	ConsistentHash Balancer = "ConsistentHash" // on a ring, by what the route says
	Maglev         Balancer = "Maglev"         // by what the route says
)

// Compression says which answers are compressed, and how.
type Compression struct {
	Algorithms []CompressionAlgorithm `json:"algorithms,omitempty"` // the first is preferred; none compress nothing
	// ContentTypes are exact, or type/*.
	ContentTypes []string `json:"contentTypes,omitempty"`
	MinSize      uint32   `json:"minSize,omitempty"` // in bytes
}

// CompressionType is the name of an algorithm, as answers have it in Content-Encoding.
type CompressionType string

// The algorithms.
const (
	Gzip   CompressionType = "gzip"
	Brotli CompressionType = "br"
	Zstd   CompressionType = "zstd"
)

// CompressionAlgorithm is an algorithm with how hard it tries.
type CompressionAlgorithm struct {
	Type  CompressionType `json:"type"`
	Level uint32          `json:"level"`
}

// LoadBalancing is how an endpoint is chosen.
type LoadBalancing struct {
	Balancer Balancer `json:"balancer,omitempty"`
	Hash     *Hash    `json:"hash,omitempty"` // of ConsistentHash and Maglev
	// SlowStart is how long new endpoints get fewer requests, and RingSize how many places a ring has; 0 for the default.
	SlowStart time.Duration `json:"slowStart,omitempty"`
	RingSize  uint32        `json:"ringSize,omitempty"`
}

// Hash is what requests have in common that go to the same endpoint: one of these.
type Hash struct {
	Header     string        `json:"header,omitempty"`
	Cookie     string        `json:"cookie,omitempty"`
	CookieTTL  time.Duration `json:"cookieTTL,omitempty"` // 0 until the browser is closed
	Path       string        `json:"path,omitempty"`      // of the cookie, as the two that follow
	Domain     string        `json:"domain,omitempty"`    // empty for the host's own
	SameSite   string        `json:"sameSite,omitempty"`
	Secure     bool          `json:"secure,omitempty"` // the cookie stays with HTTPS
	QueryParam string        `json:"queryParam,omitempty"`
	SourceIP   bool          `json:"sourceIP,omitempty"`
}

// AdmissionControl turns requests away from backends that fail.
type AdmissionControl struct {
	SuccessRate uint32        `json:"successRate,omitempty"` // below which, in percent; 0 turns nothing away
	Window      time.Duration `json:"window,omitempty"`      // in whole seconds
	MinRate     uint32        `json:"minRate,omitempty"`     // requests a second
	MaxRejected uint32        `json:"maxRejected,omitempty"` // in percent
}

// Faults are made for a share of the requests.
type Faults struct {
	Delay        time.Duration `json:"delay,omitempty"`
	DelayPercent uint32        `json:"delayPercent,omitempty"`
	Status       uint32        `json:"status,omitempty"`
	AbortPercent uint32        `json:"abortPercent,omitempty"`
}
