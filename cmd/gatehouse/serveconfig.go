package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/gatehouse-dev/gatehouse/internal/cluster"
	"github.com/gatehouse-dev/gatehouse/internal/configserver"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/listen"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/file"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote"
	"github.com/gatehouse-dev/gatehouse/internal/terminal"
)

type serveConfigFlags struct {
	paths        pathFlags
	cluster      bool
	kubeconfig   string
	context      string
	logs         logFlags
	listen       string
	health       string
	cert, key    string
	clientCA     string
	tokenFile    string
	insecure     bool
	namespaces   []string
	secrets      bool
	clients      string
	statuses     bool
	controller   string
	stateDir     string
	experimental bool
	lenient      bool
}

func newServeConfig() *cobra.Command {
	var f serveConfigFlags
	cmd := &cobra.Command{
		Use:   "serve-config PATH... | --cluster",
		Short: "Publish Gateway API objects to other installations of Gatehouse",
		Long: `Publish the objects of manifests to other installations of Gatehouse, which subscribe to
them with 'gatehouse run --remote HOST:PORT' or a source remote of a controller's
configuration. PATH is a directory, a file or - for standard input. Files are watched:
what is saved is sent at once, only what has changed. What is broken is reported, while its
last valid version stays published. --cluster publishes the objects of a Kubernetes cluster
instead, as they change.

It is served with TLS (--tls-cert, --tls-key) to clients that show a token of
--token-file or a certificate of --client-ca. Without TLS it is served on a loopback
address only, and without either of them to everybody there; --insecure lifts both.

Clients see everything but Secrets, which --secrets adds. --namespaces restricts them to
some namespaces, and to what is in none, such as GatewayClasses. --clients says so for each
client by itself.

With --cluster --statuses the statuses that clients tell of objects are written where the
objects are.`,
		Example: `  gatehouse serve-config manifests/ --tls-cert tls.crt --tls-key tls.key --token-file tokens
  gatehouse serve-config manifests/ --listen 127.0.0.1:18443
  gatehouse serve-config --cluster --namespaces edge --secrets --tls-cert tls.crt --tls-key tls.key --client-ca edge.crt
  gatehouse run --remote config.example.com:18443 --remote-token-file token`,
		Args: func(_ *cobra.Command, args []string) error {
			switch named := len(f.paths.all(args)) > 0; {
			case !named && !f.cluster:
				return usageError{errors.New("nothing to publish: name a directory or files with Gateway API manifests, such as examples/quickstart, or - for standard input, or a cluster with --cluster")}
			case named && f.cluster:
				return usageError{errors.New("either files are published or a cluster's objects: leave out the paths, or --cluster")}
			}
			return nil
		},
	}
	fl := cmd.Flags()
	f.paths.define(fl)
	fl.BoolVar(&f.cluster, "cluster", false, "publish the objects of a Kubernetes cluster")
	fl.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster (default: the Pod's ServiceAccount, else kubectl's rules)")
	fl.StringVar(&f.context, "context", "", "context of the kubeconfig")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:18443", "address for clients; port 0 picks one")
	fl.StringVar(&f.cert, "tls-cert", "", "file of the server's certificate; it is read anew for each connection, as all of these")
	fl.StringVar(&f.key, "tls-key", "", "file of its key")
	fl.StringVar(&f.clientCA, "client-ca", "", "file of the authorities whose certificates let clients in")
	fl.StringVar(&f.tokenFile, "token-file", "", "file of the bearer tokens that let clients in, one a line")
	fl.BoolVar(&f.insecure, "insecure", false, "serve without TLS, or everybody, on addresses that are not loopback too")
	fl.StringSliceVar(&f.namespaces, "namespaces", nil, "publish the objects of these namespaces only")
	fl.BoolVar(&f.secrets, "secrets", false, "publish Secrets too")
	fl.BoolVar(&f.statuses, "statuses", false, "write what clients say has become of objects into the statuses of --cluster; for one installation of clients")
	fl.StringVar(&f.controller, "controller-name", pipeline.ControllerName, "controllerName of the clients that say what has become of objects")
	fl.StringVar(&f.clients, "clients", "", "file of the clients, each with rights of its own, in the place of --token-file, --namespaces, --secrets and --statuses")
	fl.StringVar(&f.stateDir, "state-dir", "", "private directory for last valid versions (default: one for these paths)")
	fl.BoolVar(&f.experimental, "experimental", false, "read the experimental channel of the Gateway API")
	fl.BoolVar(&f.lenient, "lenient", false, "start although files have mistakes of which no valid version is known")
	fl.StringVar(&f.health, "health", "", "address for /healthz, /readyz and /metrics; empty for none")
	f.logs.define(cmd)
	for _, name := range []string{"token-file", "namespaces", "secrets", "statuses"} {
		cmd.MarkFlagsMutuallyExclusive("clients", name)
	}
	for _, name := range []string{"tls-cert", "tls-key", "client-ca", "token-file", "clients"} {
		_ = cmd.MarkFlagFilename(name)
	}
	_ = cmd.MarkFlagDirname("state-dir")
	for _, name := range []string{"state-dir", "experimental", "lenient"} { // of files
		cmd.MarkFlagsMutuallyExclusive("cluster", name)
	}
	environment(cmd)
	fromEnvironment := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := fromEnvironment(cmd, args); err != nil {
			return err
		}
		return f.check()
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return serveConfig(cmd.Context(), f, f.paths.all(args)) }
	return cmd
}

func (f *serveConfigFlags) check() error {
	if err := f.logs.check(); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return usageError{fmt.Errorf("--listen: %w", err)}
	}
	if !f.cluster && f.kubeconfig+f.context != "" {
		return usageError{errors.New("--kubeconfig and --context choose a cluster: add --cluster to publish its objects")}
	}
	encrypted, known := f.cert != "", f.clientCA != "" || f.tokenFile != "" || f.clients != ""
	switch {
	case (f.cert == "") != (f.key == ""):
		return usageError{errors.New("--tls-cert and --tls-key go together: name both")}
	case f.clientCA != "" && !encrypted:
		return usageError{errors.New("--client-ca: clients show certificates with TLS only; name the server's with --tls-cert and --tls-key")}
	case f.statuses && !f.cluster:
		return usageError{errors.New("--statuses: objects of files have no status; it goes with --cluster")}
	case (f.secrets || f.statuses) && !known && !f.insecure:
		return usageError{errors.New("--secrets and --statuses: say who may connect with --token-file, --client-ca or --clients, or say --insecure")}
	case f.insecure || remote.Loopback(host):
	case !encrypted:
		return usageError{fmt.Errorf("--listen: %q is not a loopback address: name a certificate with --tls-cert and --tls-key, or say --insecure", f.listen)}
	case !known:
		return usageError{fmt.Errorf("--listen: %q is not a loopback address: say who may connect with --token-file, --client-ca or --clients, or say --insecure", f.listen)}
	}
	return nil
}

// access says who may connect.
func (f *serveConfigFlags) access() configserver.Access {
	return configserver.Access{
		Anybody: f.clientCA == "" && f.tokenFile == "" && f.clients == "", TokenFile: f.tokenFile, Certificate: f.clientCA != "",
		Rights:      configserver.Rights{Namespaces: f.namespaces, Secrets: f.secrets, Statuses: f.statuses},
		ClientsFile: f.clients,
	}
}

// credentials are the server's. Files are read for each connection, so that certificates can be
// replaced.
func (f *serveConfigFlags) credentials() (credentials.TransportCredentials, error) {
	if f.cert == "" {
		return insecure.NewCredentials(), nil
	}
	load := func() (*tls.Config, error) {
		certificate, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("certificate of the config server: %w", err)
		}
		c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}}
		if f.clientCA == "" {
			return c, nil
		}
		text, err := os.ReadFile(f.clientCA)
		if err != nil {
			return nil, fmt.Errorf("authorities of clients: %w", err)
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !c.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("authorities of clients: %s has no certificate in PEM", f.clientCA)
		}
		if f.tokenFile != "" || f.clients != "" {
			c.ClientAuth = tls.VerifyClientCertIfGiven
		}
		return c, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return load() },
	}), nil
}

func serveConfig(ctx context.Context, f serveConfigFlags, paths []string) error {
	creds, err := f.credentials()
	if err != nil {
		return err
	}
	access := f.access()
	if err := access.Check(); err != nil {
		return err
	}
	log := f.logs.logger()
	from, err := f.published(ctx, log, paths)
	if err != nil {
		return err
	}
	defer from.release()
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_config_server_connections_refused_total",
		Help: "Connections that were closed at once since there are too many, by whose: total or per-address.",
	}, []string{"bound"})
	lis, err := listen.TCP(f.listen, configClients.Told(log, f.listen, refused))
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer lis.Close()
	server := configserver.New(configserver.Options{Kinds: from.kinds, Experimental: from.experimental, Access: access, Statuses: from.setStatus, Log: log})
	loaded := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	if f.health != "" {
		health, err := listen.TCP(f.health, probeLimits.Told(log, f.health, refused))
		if err != nil {
			return fmt.Errorf("--health: %w", err)
		}
		pages := configHealth(loaded, server.Collector(), refused)
		group.Go(func() error {
			if err := pages.Serve(health); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
		defer context.AfterFunc(ctx, func() { _ = pages.Close() })()
	}
	group.Go(func() error {
		first := sync.OnceFunc(func() { close(loaded) })
		return from.run(ctx, func(b source.Batch) {
			logConfigProblems(log, b)
			server.Apply(b)
			first()
		})
	})
	group.Go(func() error {
		select {
		case <-loaded:
		case <-ctx.Done():
			return nil
		}
		log.Info("publishing", "version", version, "address", lis.Addr().String())
		return server.Serve(ctx, lis, creds)
	})
	err = group.Wait()
	log.Info("stopped")
	return err
}

// published is what there is to publish.
type published struct {
	kinds        *kind.Table
	experimental bool
	run          func(context.Context, func(source.Batch)) error
	release      func()
	setStatus    func(object.Key, any) // nil where objects have no status
}

func (f *serveConfigFlags) published(ctx context.Context, log *slog.Logger, paths []string) (published, error) {
	if f.cluster {
		kubernetesLogs(log)
		rest, err := (&controllerFlags{kubeconfig: f.kubeconfig, context: f.context}).cluster()
		if err != nil {
			return published{}, err
		}
		secrets, statuses := f.access().Wants()
		o := cluster.PublishedOptions{REST: rest, Namespaces: f.namespaces, Secrets: secrets, Log: log}
		if statuses {
			o.ControllerName = f.controller
		}
		p, err := cluster.NewPublished(ctx, o)
		if err != nil {
			return published{}, err
		}
		from := published{kinds: p.Kinds, experimental: p.Experimental, run: p.Run, release: func() {}}
		if o.ControllerName != "" {
			from.setStatus = p.SetStatus
		}
		return from, nil
	}
	return f.publishedFiles(log, paths)
}

func (f *serveConfigFlags) publishedFiles(log *slog.Logger, paths []string) (_ published, err error) {
	for _, path := range paths {
		if _, err := os.Stat(path); path != "-" && err != nil && !f.lenient {
			return published{}, err
		}
	}
	stateDir := f.stateDir
	if stateDir == "" {
		if stateDir, err = terminal.DefaultStateDir(append([]string{"serve-config"}, paths...)); err != nil {
			return published{}, err
		}
	}
	stateDir, release, err := terminal.OpenStateDir(stateDir)
	if err != nil {
		return published{}, err
	}
	files, err := file.New(file.Options{
		Paths: paths, Stdin: os.Stdin, Kinds: kind.WithIngresses, Experimental: f.experimental, StateDir: stateDir, Strict: !f.lenient, Log: log,
	})
	if err != nil {
		release()
		return published{}, err
	}
	return published{kinds: kind.WithIngresses, experimental: f.experimental, run: files.Run, release: release}, nil
}

// configClients bounds the connections of clients. Each has one; those behind one address are many.
var configClients = listen.Limits{Total: 16384, PerAddress: 4096}

// logConfigProblems tells what is wrong with files.
func logConfigProblems(log *slog.Logger, b source.Batch) {
	for _, list := range b.Problems {
		for _, p := range list {
			log.Warn("input problem", "problem", p.Error(), "reason", string(p.Reason), "last_good_stays", p.Stale)
		}
	}
}

func configHealth(loaded <-chan struct{}, metrics ...prometheus.Collector) *http.Server {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(metrics...)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !isClosed(loaded) {
			http.Error(w, "the objects have not been read yet", http.StatusServiceUnavailable)
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
