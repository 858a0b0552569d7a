package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/agent"
	identity "github.com/gatehouse-dev/gatehouse/internal/identity/client"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
)

type proxyFlags struct {
	memberFlags
	xdsPort         int
	stateDir        string
	drainDelay      time.Duration
	drainTimeout    time.Duration
	concurrency     int
	envoy, logLevel string
	bootstrap       string
	backendMetrics  bool
	limits          string
}

func newProxy() *cobra.Command {
	var f proxyFlags
	cmd := &cobra.Command{
		Use:   "proxy --gateway NAMESPACE/NAME --controller HOST",
		Short: "Run the Envoy of a Gateway inside its pod (started by the controller)",
		Long: `Run the Envoy of a Gateway inside its pod. 'gatehouse controller' starts it, unless
its infrastructure.type is None: then whoever makes the pods does.

It gets a short-lived certificate for the pod from the controller, and Envoy its
configuration by it. The pod is ready once the first configuration is in force. On
SIGTERM it is unready at once, serves on for the drain delay, then asks clients to
leave and waits for them; a second SIGTERM ends it without waiting. Envoy's access
log goes to standard output, all else as JSON lines to standard error.`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runProxy(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	f.add(fl, "the Gateway that is served")
	boundedVar(fl, &f.xdsPort, "xds-port", 18000, 1, maxPort, "the controller's port for configuration")
	fl.StringVar(&f.limits, "limits", "", "HOST:PORT of 'gatehouse limits', where requests are counted for all proxies of the Gateway")
	fl.StringVar(&f.stateDir, "state-dir", "/var/run/gatehouse", "directory for sockets and Envoy's log; nothing is written elsewhere")
	boundedVar(fl, &f.drainDelay, "drain-delay", 5*time.Second, 0, maxDrain, "how long it serves on, unready, before clients are asked to leave")
	boundedVar(fl, &f.drainTimeout, "drain-timeout", 20*time.Second, 0, maxDrain, "how long clients may take to leave after that")
	boundedVar(fl, &f.concurrency, "concurrency", 0, 0, maxConcurrency, "worker threads of Envoy (default: one per CPU that the container may use)")
	fl.StringVar(&f.envoy, "envoy", "", "path of the Envoy binary (default: the cache of 'gatehouse envoy install', PATH)")
	fl.StringVar(&f.logLevel, "log-level", "warning", "of Envoy: "+strings.Join(envoyLevels, ", "))
	fl.StringVar(&f.bootstrap, "bootstrap-merge", "", "YAML or JSON that is merged into Envoy's bootstrap: objects are merged, lists appended, null removes")
	fl.BoolVar(&f.backendMetrics, "backend-metrics", false, "count for each backend too, which doubles the memory that one takes")
	complete(cmd, "log-level", envoyLevels...)
	environment(cmd)
	return cmd
}

var envoyLevels = []string{"trace", "debug", "info", "warning", "error", "critical", "off"}

func (f *proxyFlags) check() error {
	if err := f.memberFlags.check(); err != nil {
		return err
	}
	if f.concurrency == 0 {
		// The Go runtime has read the container's limits; Envoy would count the
		// machine's CPUs.
		f.concurrency = runtime.GOMAXPROCS(0)
	}
	if !filepath.IsAbs(f.stateDir) {
		return usageError{fmt.Errorf("--state-dir: %q is not an absolute path", f.stateDir)}
	}
	return oneOf("log-level", f.logLevel, envoyLevels...)
}

func runProxy(ctx context.Context, f proxyFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	var additions []byte
	if f.bootstrap != "" {
		var err error
		if additions, err = os.ReadFile(f.bootstrap); err != nil {
			return err
		}
	}
	binary, err := proxy.Find(ctx, proxy.FindOptions{Explicit: f.envoy})
	if err != nil {
		return err
	}
	level := "info"
	if f.logLevel == "trace" || f.logLevel == "debug" {
		level = "debug"
	}
	log := newLogger(os.Stderr, "json", level)
	client, err := identity.New(identity.Options{
		API:       net.JoinHostPort(f.controller, strconv.Itoa(f.apiPort)),
		XDS:       net.JoinHostPort(f.controller, strconv.Itoa(f.xdsPort)),
		TokenFile: f.tokenFile, CAFile: f.caFile, Log: log,
	})
	if err != nil {
		return err
	}
	var dialLimits func(context.Context) (net.Conn, error)
	if f.limits != "" {
		if _, _, err := net.SplitHostPort(f.limits); err != nil {
			return usageError{fmt.Errorf("--limits: %w", err)}
		}
		dialLimits = func(ctx context.Context) (net.Conn, error) {
			return client.DialLimits(ctx, f.limits, f.name.Namespace, f.name.Name)
		}
	}
	health, err := net.Listen("tcp", f.health)
	if err != nil {
		return fmt.Errorf("--health: %w", err)
	}
	log.Info("starting", "version", version, "gateway", f.gateway, "envoy_version", binary.Version, "workers", f.concurrency)
	a := agent.New(agent.Config{
		Gateway: f.name, Dial: client.Dial, DialLimits: dialLimits, StateDir: f.stateDir, Binary: binary,
		Concurrency: f.concurrency, LogLevel: f.logLevel, BackendStats: f.backendMetrics, Additions: additions, Health: health,
		DrainDelay: f.drainDelay, DrainTimeout: f.drainTimeout,
		Collectors: client.Collectors(), Log: log, Output: proxyLog{log, ctx}.take, Stdout: os.Stdout,
	})

	// The certificate must be there, and renewed, for as long as Envoy is.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	defer beside.Wait()
	defer end()
	beside.Go(func() { client.Run(life) })
	beside.Go(func() { proxy.ReapOrphans(life) })
	beside.Go(func() { hurryWhenToldTwice(life, a.Hurry) })
	err = a.Run(ctx)
	log.Info("stopped")
	return err
}

// hurryWhenToldTwice waits for a second SIGTERM or Ctrl-C.
func hurryWhenToldTwice(ctx context.Context, hurry func()) {
	terms := make(chan os.Signal, 2)
	signal.Notify(terms, syscall.SIGTERM)
	defer signal.Stop(terms)
	for told := 0; told < 2; {
		select {
		case <-ctx.Done():
			return
		case <-hurried(ctx):
			told = 2
		case <-terms:
			told++
		}
	}
	hurry()
}

// proxyLog passes on what Envoy prints, which its own level has chosen.
type proxyLog struct {
	log *slog.Logger
	run context.Context // only asked whether it is over
}

func (p proxyLog) take(line proxy.Line) {
	quiet := envoyLog{p.log, false, p.run}
	if line.Level == slog.LevelWarn && !quiet.matters(line) {
		return
	}
	p.log.Log(context.Background(), max(line.Level, slog.LevelInfo), "envoy: "+line.Text, "logger", line.Logger)
}
