package identity

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// reason is why a request was refused, in the log and in metrics.
type reason string

const (
	reasonHandshake reason = "handshake"         // no TLS 1.3, or a certificate that isn't ours
	reasonStranger  reason = "not-a-controller"  // a path for controllers only
	reasonRate      reason = "too-many-requests" // of one pod, or from one address
	reasonNoToken   reason = "no-token"
	reasonRequest   reason = "bad-request"
	reasonMalformed reason = "malformed-token"
	reasonExpired   reason = "expired-token"
	reasonAudience  reason = "foreign-audience"
	reasonToken     reason = "invalid-token" // the API server says no
	reasonUnbound   reason = "unbound-token" // it names no pod
	reasonPodGone   reason = "pod-gone"
	reasonForeign   reason = "foreign-pod"     // not of the fleet that it claims to be of
	reasonNoAddress reason = "pod-no-address"  // this passes by itself
	reasonAddress   reason = "foreign-address" // the token was not sent by its pod
)

var reasons = []reason{
	reasonHandshake, reasonStranger, reasonRate, reasonNoToken, reasonRequest, reasonMalformed, reasonExpired,
	reasonAudience, reasonToken, reasonUnbound, reasonPodGone, reasonForeign, reasonNoAddress, reasonAddress,
}

// refusal is an error with what the caller and the operator are told.
type refusal struct {
	status int
	reason reason
	text   string // for the caller, and the log
}

func (r *refusal) Error() string { return r.text }

func refuse(why reason, text string) *refusal {
	status := http.StatusForbidden
	switch why {
	case reasonNoToken, reasonMalformed, reasonExpired, reasonAudience, reasonToken:
		status = http.StatusUnauthorized
	case reasonRequest:
		status = http.StatusBadRequest
	case reasonRate:
		status = http.StatusTooManyRequests
	default:
	}
	return &refusal{status: status, reason: why, text: text}
}

// Of a flood of refusals, some are logged at first, and then one a second for each
// reason. All are counted.
const (
	firstLines   = 20
	lineInterval = time.Second
)

// refusals logs and counts.
type refusals struct {
	log   *slog.Logger
	count *prometheus.CounterVec
	lines map[reason]*rate.Sometimes // one for each reason
}

func newRefusals(log *slog.Logger) *refusals {
	r := &refusals{
		log: log,
		count: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_identity_refusals_total",
			Help: "Requests and connections that the controller's API refused, by reason.",
		}, []string{"reason"}),
		lines: map[reason]*rate.Sometimes{},
	}
	for _, why := range reasons {
		r.count.WithLabelValues(string(why))
		r.lines[why] = &rate.Sometimes{First: firstLines, Interval: lineInterval}
	}
	return r
}

// add logs and counts a refusal. The arguments must not be secret.
func (r *refusals) add(why reason, text, source string, args ...any) {
	r.count.WithLabelValues(string(why)).Inc()
	r.lines[why].Do(func() {
		r.log.Warn("refused", append([]any{"reason", string(why), "source", source, "error", text}, args...)...)
	})
}
