package xds

import (
	"log/slog"
	"time"

	"golang.org/x/time/rate"
)

// The reasons for which proxies are refused or cut off, in the log and in metrics.
const (
	refusedHandshake   = "handshake"   // no TLS 1.3, or a certificate that isn't ours
	refusedCertificate = "certificate" // a certificate that is not a proxy's, or no longer
	refusedExpired     = "expired"     // a certificate that ended while it was in use
	refusedNode        = "foreign-node"
	refusedConnections = "too-many-connections"
	refusedPod         = "pod"            // the certificate of a pod that is gone, or from another address
	refusedNames       = "too-many-names" // or names that are too long
)

// refusals logs and counts refused proxies. Of many refusals for one reason the log has the
// first ones, and then one a second.
type refusals struct {
	log     *slog.Logger
	metrics *metrics
	lines   map[string]*rate.Sometimes
}

func newRefusals(log *slog.Logger, m *metrics) *refusals {
	r := &refusals{log: log, metrics: m, lines: map[string]*rate.Sometimes{}}
	for _, why := range []string{refusedHandshake, refusedCertificate, refusedExpired, refusedNode, refusedConnections, refusedPod, refusedNames} {
		m.refused.WithLabelValues(why)
		r.lines[why] = &rate.Sometimes{First: 20, Interval: time.Second}
	}
	return r
}

func (r *refusals) add(why string, args ...any) {
	r.metrics.refused.WithLabelValues(why).Inc()
	r.lines[why].Do(func() { r.log.Warn("proxy refused", append([]any{"reason", why}, args...)...) })
}
