package listen

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// Told returns the limits with their refusals counted by reason, and told in a log: all of a few,
// and one a second of a flood.
func (l Limits) Told(log *slog.Logger, address string, count *prometheus.CounterVec) Limits {
	lines := rate.Sometimes{First: 20, Interval: time.Second}
	l.Refused = func(source netip.Addr, why Reason) {
		count.WithLabelValues(string(why)).Inc()
		lines.Do(func() {
			log.Warn("connection refused: there are too many", "address", address, "source", source, "bound", string(why))
		})
	}
	return l
}
