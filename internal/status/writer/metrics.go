package writer

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// What becomes of a write.
const (
	resultOK       = "ok"
	resultConflict = "conflict" // somebody else was first; it is tried again
	resultGone     = "gone"     // the object doesn't exist any more
	resultError    = "error"    // it is tried again
)

type metrics struct {
	writes *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_status_writes_total",
		Help: "Statuses written to the API server, by kind of object and by what became of it: ok, conflict, gone, error.",
	}, []string{"kind", "result"})}
	if r != nil {
		r.MustRegister(m.writes)
	}
	return m
}

func (m *metrics) count(k object.Key, result string) {
	m.writes.WithLabelValues(k.Kind.Name(), result).Inc()
}
