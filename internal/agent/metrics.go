package agent

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes is how many may ask for metrics at a time: each is work for Envoy's
// main thread.
const maxScrapes = 2

// metrics serves the agent's metrics, and Envoy's if it answers.
func (a *Agent) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	ours := prometheus.WrapRegistererWith(prometheus.Labels{"gateway": a.cfg.Gateway.String()}, registry)
	ours.MustRegister(&collector{agent: a})
	ours.MustRegister(a.cfg.Collectors...)
	own := promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true})
	scrapes := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case scrapes <- struct{}{}:
			defer func() { <-scrapes }()
		default:
			http.Error(w, "others are being answered", http.StatusServiceUnavailable)
			return
		}
		// Whatever else the client would take, Envoy speaks the text format.
		r.Header.Del("Accept")
		envoy, err := a.envoyMetrics(r.Context())
		own.ServeHTTP(w, r)
		if err != nil {
			a.log.Debug("no metrics of envoy", "error", err)
			return
		}
		_, _ = w.Write(envoy)
	})
}

// envoyMetrics asks Envoy for its metrics.
func (a *Agent) envoyMetrics(ctx context.Context) ([]byte, error) {
	if err := a.supervisor.Flush(ctx); err != nil {
		return nil, err
	}
	return a.supervisor.Admin(ctx, http.MethodGet, "/stats/prometheus")
}

// collector reads the agent's state when it is asked for.
type collector struct{ agent *Agent }

var (
	readyDesc = prometheus.NewDesc("gatehouse_proxy_ready",
		"1 if the proxy is ready for clients.", nil, nil)
	drainingDesc = prometheus.NewDesc("gatehouse_proxy_draining",
		"1 if the proxy was told to stop.", nil, nil)
	restartsDesc = prometheus.NewDesc("gatehouse_proxy_envoy_restarts_total",
		"Envoy processes started after the first.", nil, nil)
	connectedDesc = prometheus.NewDesc("gatehouse_proxy_controller_connected_since_seconds",
		"Unix time since when there is a connection to the control plane; 0 without one.", nil, nil)
	connectionsDesc = prometheus.NewDesc("gatehouse_proxy_controller_connections_total",
		"Tries to connect to the control plane.", []string{"result"}, nil)
	silentDesc = prometheus.NewDesc("gatehouse_proxy_controller_silent_total",
		"Connections to the control plane that were ended because nothing came over them.", nil, nil)
	keptDesc = prometheus.NewDesc("gatehouse_proxy_last_good_kept_seconds",
		"Unix time when the proxy had the configuration that is kept as its last good one; 0 without one.", nil, nil)
	keptServedDesc = prometheus.NewDesc("gatehouse_proxy_last_good_served_since_seconds",
		"Unix time since when the proxy serves its last good configuration because no control plane answers; 0 if one does.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{readyDesc, drainingDesc, restartsDesc, connectedDesc, connectionsDesc, silentDesc, keptDesc, keptServedDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) { out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	counter := func(d *prometheus.Desc, v int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	relay := c.agent.relay.state()
	gauge(readyDesc, oneIf(c.agent.ready() == nil))
	gauge(drainingDesc, oneIf(c.agent.draining.Load()))
	counter(restartsDesc, c.agent.supervisor.Snapshot().Restarts)
	gauge(connectedDesc, unix(relay.since))
	counter(connectionsDesc, relay.succeeded, "ok")
	counter(connectionsDesc, relay.failed, "failed")
	counter(silentDesc, relay.silent)
	kept := c.agent.kept.Report()
	gauge(keptDesc, unix(kept.KeptAt))
	gauge(keptServedDesc, unix(kept.ServedSince))
}

// unix returns a time in seconds; 0 for none.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
