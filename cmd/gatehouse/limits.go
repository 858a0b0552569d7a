package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	identity "github.com/gatehouse-dev/gatehouse/internal/identity/client"
	"github.com/gatehouse-dev/gatehouse/internal/listen"
	"github.com/gatehouse-dev/gatehouse/internal/ratelimit"
)

type limitsFlags struct {
	memberFlags
	redis  redisFlags
	listen string
}

func (f *limitsFlags) check() error {
	if err := f.memberFlags.check(); err != nil {
		return err
	}
	return f.redis.check()
}

func newLimits() *cobra.Command {
	var f limitsFlags
	cmd := &cobra.Command{
		Use:   "limits --gateway NAMESPACE/NAME --controller HOST",
		Short: "Count requests for all proxies of a Gateway (started by the controller)",
		Long: `Count requests for all proxies of a Gateway, by the limits of the scope Global of its
RateLimitPolicies. 'gatehouse controller' starts it in a pod of its own while a Gateway has
such limits.

It gets a short-lived certificate for the pod from the controller, and counts for whoever
has one of a proxy of the same Gateway. Requests say themselves what they are counted by,
so it needs no configuration, and no controller but for its certificate. Counts are in its
memory: they begin anew when it ends. Or they are in a Redis or Valkey, which several of these
share. While that one does not answer, the onFailure of each limit decides.`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runLimits(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	f.add(fl, "the Gateway whose proxies count here")
	f.redis.add(fl)
	fl.StringVar(&f.listen, "listen", ":19002", "address for the proxies")
	environment(cmd)
	return cmd
}

func runLimits(ctx context.Context, f limitsFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	log := newLogger(os.Stderr, "json", "info")
	api := net.JoinHostPort(f.controller, strconv.Itoa(f.apiPort))
	client, err := identity.New(identity.Options{API: api, XDS: api, TokenFile: f.tokenFile, CAFile: f.caFile, Log: log})
	if err != nil {
		return err
	}
	counts, err := f.redis.store(f.name)
	if err != nil {
		return err
	}
	defer counts.Close()
	refused := newRefused(f.gateway)
	health, err := listen.TCP(f.health, probeLimits.Told(log, f.health, refused))
	if err != nil {
		return fmt.Errorf("--health: %w", err)
	}
	defer health.Close()
	lis, err := listen.TCP(f.listen, proxyLimits.Told(log, f.listen, refused))
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	log.Info("starting", "version", version, "gateway", f.gateway, "redis", f.redis.address)
	counting := ratelimit.New(ratelimit.Options{Gateway: f.name, Store: counts, Log: log})
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(client.Collectors()...)
	registry.MustRegister(counting, refused)
	probes := limitsHealth(client.Ready(), counting.Counts, registry)

	life, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer end()
	beside.Go(func() { client.Run(life) })
	beside.Go(func() { _ = probes.Serve(health) })
	beside.Go(func() { counting.Follow(life) })
	defer probes.Close()
	config := client.LimitsTLS(f.name.Namespace, f.name.Name)
	err = counting.Serve(life, lis, grpc.Creds(credentials.NewTLS(config)), grpc.ConnectionTimeout(handshakeTime))
	log.Info("stopped")
	return err
}

// handshakeTime is how long a proxy may take to show who it is.
const handshakeTime = 5 * time.Second

// Whoever reaches the pod reaches its ports. A proxy has a connection for each of its workers, and
// proxies on the network of their nodes share an address. The others are short.
var (
	proxyLimits = listen.Limits{Total: 16384, PerAddress: 4096}
	probeLimits = listen.Limits{Total: 256, PerAddress: 32}
)

// newRefused counts connections beyond a bound.
func newRefused(gateway string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_limits_connections_refused_total", ConstLabels: prometheus.Labels{"gateway": gateway},
		Help: "Connections that were closed at once since there are too many, by whose: total or per-address.",
	}, []string{"bound"})
}

// limitsHealth answers for the health of what counts: it is ready once proxies can know it, and
// while the counts can be had. By that the policies' statuses say when nobody counts, and proxies
// that connect anew come to another pod, if one can count.
func limitsHealth(certified <-chan struct{}, counts func() error, registry *prometheus.Registry) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !isClosed(certified) {
			http.Error(w, "there is no certificate from the controller yet", http.StatusServiceUnavailable)
			return
		}
		if counts() != nil {
			http.Error(w, "Redis does not answer; the log says why", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: handshakeTime, ReadTimeout: pageTime, WriteTimeout: pageTime,
		MaxHeaderBytes: 8 << 10, IdleTimeout: time.Minute,
	}
}

// pageTime is how long a page may take.
const pageTime = 30 * time.Second

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
