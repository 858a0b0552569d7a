package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/gatehouse-dev/gatehouse/internal/admin"
	"github.com/gatehouse-dev/gatehouse/internal/listen"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// Ready reports whether this replica has the whole configuration and serves it.
func (c *Cluster) Ready() (bool, string) {
	if other := c.claim.heldBy(); other != "" {
		return false, c.claim.standsBack(other)
	}
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
		v.Remotes = c.elsewhere()
		return v
	}, Troubled: c.counts, Ready: c.readyz, Replica: c.opts.Self.Name, More: slices.Concat(c.keySets.Collectors(), c.stage.Collectors())}
}

// Whoever reaches the pod reaches its ports. A proxy has up to four connections for xDS;
// several fleets on their nodes' network share an address. The others are short.
var (
	xdsLimits   = listen.Limits{Total: 16384, PerAddress: 64}
	apiLimits   = listen.Limits{Total: 2048, PerAddress: 64}
	fleetLimits = listen.Limits{Total: 1024, PerAddress: 16} // the API servers, and whoever is refused
	pagesLimits = listen.Limits{Total: 256, PerAddress: 32}
	adminLimits = listen.Limits{Total: 64, PerAddress: 64}
)

const (
	pageTime  = 30 * time.Second
	adminTime = 5 * time.Minute // a profile may take a while
)

// listen listens on a port, within limits.
func (c *Cluster) listen(port int, limits listen.Limits) (net.Listener, error) {
	return c.listenAt(net.JoinHostPort(c.opts.Self.Host, strconv.Itoa(port)), limits)
}

func (c *Cluster) listenAt(address string, limits listen.Limits) (net.Listener, error) {
	if c.config.Identity.AnyAddress { // addresses are translated: one may stand for many
		limits.PerAddress = limits.Total
	}
	return listen.TCP(address, limits.Told(c.log, address, c.tooMany))
}

// servePages serves what the kubelet and Prometheus ask for.
func (c *Cluster) servePages(ctx context.Context, port int, pages http.Handler) error {
	lis, err := c.listen(port, pagesLimits)
	if err != nil {
		return err
	}
	return admin.Serve(ctx, lis, pages, pageTime)
}

func (c *Cluster) serveAdmin(ctx context.Context) error {
	lis, err := c.listenAt(c.opts.Admin, adminLimits)
	if err != nil {
		return err
	}
	return admin.Serve(ctx, lis, c.admin().Handler(), adminTime)
}

// record sends what is recorded to the API server.
func (c *Cluster) record(ctx context.Context) error {
	if err := c.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	c.broadcaster.Shutdown()
	return nil
}
