package cluster

import (
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/gatehouse-dev/gatehouse/internal/admin"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// Ready reports whether this replica has the whole configuration and serves it.
func (c *Cluster) Ready() (bool, string) {
	select {
	case <-c.usable:
		return c.proxies.ready()
	default:
		return false, "the objects of the cluster have not all been read yet"
	}
}

// health serves what the kubelet asks for.
func (c *Cluster) health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", c.readyz)
	return mux
}

func (c *Cluster) readyz(w http.ResponseWriter, _ *http.Request) {
	if ok, why := c.Ready(); !ok {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// metrics serves Prometheus.
func (c *Cluster) metrics() http.Handler {
	all := prometheus.Gatherers{c.registry, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		if t := c.leads.Load(); t != nil {
			return t.metrics.Gather()
		}
		return nil, nil
	})}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(all, promhttp.HandlerOpts{}))
	return mux
}

func (c *Cluster) admin() admin.Admin {
	return admin.Admin{Pipeline: c.pipeline, Server: c.server, View: func() view.View {
		v := view.Of(c.pipeline)
		v.Ready, v.Why = c.Ready()
		return v
	}, Ready: c.readyz}
}

// at returns the address of a port.
func (c *Cluster) at(port int) string { return net.JoinHostPort(c.opts.Self.Host, strconv.Itoa(port)) }
