package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/extension"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/standalone"
	"github.com/gatehouse-dev/gatehouse/internal/terminal"
)

type runFlags struct {
	paths        pathFlags
	remotes      remoteFlags
	members      memberClusterFlags
	bind         []string
	portOffset   int
	admin        string
	envoy        string
	stateDir     string
	experimental bool
	concurrency  int
	drain        time.Duration
	logFormat    string
	logLevel     string
	envoyLog     bool
	accessLog    string
	extensions   string
	unsafe       bool
	lenient      bool
	client       clientFlags
	ingresses    ingressFlags
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run PATH... | --remote HOST:PORT",
		Short: "Serve Gateway API manifests from files with Envoy on this machine",
		Long: `Serve Gateway API manifests from files with Envoy processes on this machine, one
for each Gateway. PATH is a directory, a file or - for standard input. Files are
watched: what is saved takes effect at once, and what is broken is reported while its
last valid version goes on serving. Where none is known, as at the first start, mistakes
are printed and nothing is served, unless --lenient has the rest served.

--remote takes objects from a config server, 'gatehouse serve-config', instead of files or
beside them. What it has told is kept: while it can't be reached, and after a restart, the
last state of it is served.

--member-cluster has routes lead to Services of clusters: to those that a ServiceExport in such
a cluster names, as a backend of kind ServiceImport.

Gateways need a class: 'gatehouse' works by itself, others need a GatewayClass
object with the controllerName gatehouse.dev/controller.

On a terminal the state of everything is shown and kept up to date, and keys choose
what of it (? tells them, q stops serving); elsewhere, log lines are written. If this process is killed, the Envoys go on serving, and
the next run with the same paths takes them over.

Whoever writes the manifests decides what listens on this machine and where it leads.
Files of yours are not theirs to write: GatewayParameters that name files for access
logs, or add to the configuration that Envoy starts with, are refused without
--allow-unsafe-parameters.`,
		Example: `  gatehouse run examples/quickstart --port-offset 8000
  gatehouse run gateway.yaml routes/ --bind 0.0.0.0
  gatehouse run --remote config.example.com:18443 --remote-token-file token
  kubectl get gateways,httproutes,services,endpointslices,secrets -A -o yaml | gatehouse run -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(f.paths.all(args)) == 0 && len(f.remotes.addresses) == 0 {
				return usageError{errors.New("nothing to serve: name a directory or files with Gateway API manifests, such as examples/quickstart, or - for standard input, or a config server with --remote")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), f, f.paths.all(args)) },
	}
	fl := cmd.Flags()
	f.paths.define(fl)
	fl.StringArrayVar(&f.bind, "bind", []string{"127.0.0.1"}, "IP address for the listeners of Gateways without spec.addresses; repeatable")
	boundedVar(fl, &f.portOffset, "port-offset", 0, 0, maxPortOffset, "added to the port of every listener, so that 80 needs no privileges")
	fl.StringVar(&f.admin, "admin", "127.0.0.1:19000", "address of the admin interface; port 0 picks one, empty turns it off")
	fl.StringVar(&f.envoy, "envoy", "", "path of the Envoy binary (default: GATEHOUSE_ENVOY, 'gatehouse envoy install', PATH)")
	fl.StringVar(&f.stateDir, "state-dir", "", "private directory for sockets and logs (default: one for these paths)")
	fl.BoolVar(&f.experimental, "experimental", false, "read the experimental channel of the Gateway API")
	boundedVar(fl, &f.concurrency, "concurrency", 0, 0, maxConcurrency, "worker threads of each Envoy (default: one per CPU)")
	boundedVar(fl, &f.drain, "drain-timeout", proxy.DefaultDrainTimeout, 0, maxDrain, "how long clients may finish when an Envoy stops")
	fl.StringVar(&f.logFormat, "log-format", "text", "text or json")
	fl.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	fl.BoolVar(&f.envoyLog, "envoy-log", false, "print all that the Envoys log, not only warnings")
	fl.StringVar(&f.accessLog, "access-log", "", "file to which a line of JSON is added for each request; parameters that say accessLog decide themselves")
	fl.StringVar(&f.extensions, "extensions", "", "file with 'extensions', a list of extension servers as in the configuration of 'gatehouse controller'; they change what the Envoys are sent")
	fl.BoolVar(&f.lenient, "lenient", false, "start although files have mistakes of which no valid version is known")
	defineUnsafe(fl, &f.unsafe)
	f.remotes.define(cmd)
	f.members.define(cmd)
	f.client.define(fl)
	f.ingresses.define(fl)
	complete(cmd, "log-format", logFormats...)
	complete(cmd, "log-level", logLevels...)
	complete(cmd, "bind", "127.0.0.1", "0.0.0.0", "::1", "::")
	_ = cmd.MarkFlagDirname("state-dir")
	_ = cmd.MarkFlagFilename("access-log")
	_ = cmd.MarkFlagFilename("extensions", "yaml", "json")
	return cmd
}

// defineUnsafe defines the flag of those who trust whoever writes the manifests.
func defineUnsafe(fl *pflag.FlagSet, unsafe *bool) {
	fl.BoolVar(unsafe, "allow-unsafe-parameters", false, "let GatewayParameters of the manifests name files for access logs and add to Envoy's bootstrap, with which they can write any file that you can")
}

func run(ctx context.Context, f runFlags, paths []string) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := f.remotes.check(); err != nil {
		return err
	}
	clusters, err := f.members.options()
	if err != nil {
		return err
	}
	var extensions []extension.Options
	if f.extensions != "" {
		if extensions, err = configuration.LoadExtensions(f.extensions); err != nil {
			return usageError{fmt.Errorf("--extensions: %w", err)}
		}
	}
	client, err := f.client.options()
	if err != nil {
		return err
	}
	ingresses, err := f.ingresses.options()
	if err != nil {
		return err
	}
	binary, err := proxy.Find(ctx, proxy.FindOptions{Explicit: f.envoy})
	if err != nil {
		return err
	}
	if f.stateDir == "" {
		if f.stateDir, err = terminal.DefaultStateDir(slices.Concat(paths, f.remotes.keys())); err != nil {
			return err
		}
	}
	if f.stateDir, err = filepath.Abs(f.stateDir); err != nil {
		return err
	}
	var release func()
	if f.stateDir, release, err = terminal.OpenStateDir(f.stateDir); err != nil {
		return err
	}
	defer release()

	survivePipe()
	var screen *terminal.Live
	log := newLogger(os.Stderr, f.logFormat, f.logLevel)
	if f.logFormat == "text" && terminal.Interactive(os.Stdout, os.Stderr) {
		screen = terminal.NewLive(os.Stdout, strings.Join(slices.Concat(paths, f.remotes.keys()), " "), keysFor(paths))
		defer screen.GiveBack()
		beforeExit(ctx, screen.GiveBack)
		log = slog.New(screen.Handler(logLevel(f.logLevel)))
	}
	log.Info("starting", "version", version, "envoy", binary.Path, "envoy_version", binary.Version, "state_dir", f.stateDir)

	if f.accessLog != "" { // Envoy has another working directory
		if f.accessLog, err = filepath.Abs(f.accessLog); err != nil {
			return err
		}
	}
	announce := announcer(log, screen)
	s, err := standalone.New(standalone.Options{
		Paths: paths, Stdin: os.Stdin, Remotes: f.remotes.options(), Clusters: clusters, Experimental: f.experimental,
		Bind: f.bind, PortOffset: f.portOffset, Client: client, UnsafeParameters: f.unsafe, AccessLog: f.accessLog, Lenient: f.lenient, Ingresses: ingresses, Extensions: extensions,
		Envoy: binary, Concurrency: f.concurrency, StateDir: f.stateDir, DrainTimeout: f.drain,
		Log: log, OnCommit: announce.changed, OnStates: announce.states,
		Output: envoyLog{log, f.envoyLog, ctx}.take,
	})
	if err != nil {
		return err
	}
	stopAdmin, err := serveAdmin(f, s, log)
	if err != nil {
		return err
	}
	defer stopAdmin()

	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		announce.run(done, s)
	}()
	go func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
			announce.stopping(f.drain.String())
		}
		select {
		case <-done:
		case <-hurried(ctx):
			log.Info("ending the Envoys now")
			s.Hurry()
		}
	}()
	err = s.Run(ctx)
	close(done)
	<-finished
	if screen == nil {
		log.Info("stopped")
	}
	return err
}

// keysFor returns where the screen's keys are typed: nowhere if manifests are.
func keysFor(paths []string) terminal.Keys {
	if slices.Contains(paths, "-") {
		return terminal.Keys{}
	}
	return terminal.Keys{In: os.Stdin, Quit: func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT) // as Ctrl-C does
	}}
}

func (f *runFlags) check() error {
	for _, addr := range f.bind {
		if _, err := netip.ParseAddr(addr); err != nil {
			return usageError{fmt.Errorf("--bind: %q is not an IP address", addr)}
		}
	}
	if err := oneOf("log-format", f.logFormat, logFormats...); err != nil {
		return err
	}
	if err := oneOf("log-level", f.logLevel, logLevels...); err != nil {
		return err
	}
	return checkAdmin(f.admin)
}

// checkAdmin checks where the admin interface is to be, which has no authentication.
func checkAdmin(address string) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return usageError{fmt.Errorf("--admin: %w", err)}
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return usageError{fmt.Errorf("--admin: %q is not a loopback address; the admin interface has no authentication", address)}
	}
	return nil
}

var (
	logFormats = []string{"text", "json"}
	logLevels  = []string{"debug", "info", "warn", "error"}
)

func logLevel(name string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(name)) // checked with the flags
	return l
}

func newLogger(w io.Writer, format, level string) *slog.Logger {
	opts := &slog.HandlerOptions{Level: logLevel(level)}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// survivePipe keeps the process alive when whoever reads its log goes away: it has
// Envoys to drain. The children are not told to ignore the signal, as they would
// be if this process ignored it.
func survivePipe() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// serveAdmin serves the admin interface on the state directory's socket, for
// `gatehouse status`, and on TCP where asked for.
func serveAdmin(f runFlags, s *standalone.Standalone, log *slog.Logger) (stop func(), err error) {
	unix, err := proxy.ListenSocket(filepath.Join(f.stateDir, terminal.AdminSocket), log)
	if err != nil {
		return nil, err
	}
	listeners := []net.Listener{unix}
	if f.admin != "" {
		tcp, err := net.Listen("tcp", f.admin)
		if err != nil {
			_ = unix.Close()
			return nil, fmt.Errorf("admin interface: %w; choose another address with --admin (port 0 picks a free one)", err)
		}
		listeners = append(listeners, tcp)
		log.Info("admin interface", "address", tcp.Addr().String())
		if err := os.WriteFile(filepath.Join(f.stateDir, terminal.AdminAddress), []byte(tcp.Addr().String()+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second}
	for _, l := range listeners {
		go func() {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				log.Error("admin interface stopped", "error", err)
			}
		}()
	}
	return func() {
		_ = server.Close()
		_ = os.Remove(filepath.Join(f.stateDir, terminal.AdminAddress))
	}, nil
}
