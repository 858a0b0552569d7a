package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// Ready reports whether this replica has the whole configuration and serves it.
func (c *Cluster) Ready() (bool, string) {
	select {
	case <-c.usable:
		if c.static != nil && !c.static.configured.Load() {
			return false, "the proxy has no configuration yet"
		}
		return true, ""
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

func (c *Cluster) admin() admin {
	return admin{c.pipeline, c.server, func() View {
		v := c.pipeline.View()
		v.Ready, v.Why = c.Ready()
		return v
	}, c.readyz}
}

// serveHTTP serves until ctx ends.
func serveHTTP(ctx context.Context, address string, handler http.Handler) error {
	lis, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}

// at returns the address of a port.
func (c *Cluster) at(port int) string { return net.JoinHostPort(c.opts.Self.Host, strconv.Itoa(port)) }
