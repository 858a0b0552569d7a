package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gatehouse-dev/gatehouse/internal/cluster"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
)

type controllerFlags struct {
	config         string
	kubeconfig     string
	context        string
	admin          string
	controllerName string
	namespaces     []string
	image          string
	pullPolicy     string
	infrastructure string
	roles          []string
	leaderElection bool
	logLevel       string
	logFormat      string
	podName        string
	podNamespace   string
	podIP          string
}

func newController() *cobra.Command {
	var f controllerFlags
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Serve the Gateway API objects of a Kubernetes cluster, with a fleet of proxies for each Gateway",
		Long: `Serve the Gateway API objects of a Kubernetes cluster: each Gateway of a class with
our controllerName gets a fleet of Envoy proxies of its own, its configuration, and
a status that says what is true.

It runs in the cluster, as the chart installs it. All replicas serve configuration;
one of them, the leader, writes status and infrastructure. With --roles, processes of their
own make the fleets, and others all the rest. A configuration file
(--config) says what differs from the defaults; when it changes, the controller
starts anew with it, and the proxies serve on meanwhile.`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runController(cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "", "file with a Configuration; flags win over what it says")
	fl.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file, to run outside of the cluster (default: the Pod's ServiceAccount, else kubectl's rules)")
	fl.StringVar(&f.context, "context", "", "context of the kubeconfig")
	fl.StringVar(&f.admin, "admin", "127.0.0.1:19000", "address of the admin interface, on loopback; empty turns it off")
	fl.StringVar(&f.controllerName, "controller-name", "", "controllerName of the GatewayClasses to serve")
	fl.StringSliceVar(&f.namespaces, "namespaces", nil, "read the objects of these namespaces only")
	fl.StringVar(&f.infrastructure, "infrastructure", "", "Kubernetes, or None where somebody else runs the proxies")
	fl.StringSliceVar(&f.roles, "roles", nil, "what this process does: Configuration, Infrastructure or both (default both)")
	fl.StringVar(&f.image, "proxy-image", "", "image of the proxies")
	fl.StringVar(&f.pullPolicy, "proxy-image-pull-policy", "", "when that image is pulled: Always, IfNotPresent or Never")
	fl.BoolVar(&f.leaderElection, "leader-election", true, "elect one replica to write; off only where there is one")
	fl.StringVar(&f.logLevel, "log-level", "", "debug, info, warn or error")
	fl.StringVar(&f.logFormat, "log-format", "", "json or text")
	fl.StringVar(&f.podName, "pod-name", "", "name of this Pod (default: POD_NAME, else the host's name)")
	fl.StringVar(&f.podNamespace, "pod-namespace", "", "namespace of this Pod (default: POD_NAMESPACE, else the ServiceAccount's, else gatehouse-system)")
	fl.StringVar(&f.podIP, "pod-ip", "", "IP address where other replicas reach this one (default: POD_IP)")
	complete(cmd, "log-format", configuration.Formats...)
	complete(cmd, "log-level", configuration.Levels...)
	complete(cmd, "roles", string(configuration.RoleConfiguration), string(configuration.RoleInfrastructure))
	complete(cmd, "infrastructure", string(configuration.InfrastructureKubernetes), string(configuration.InfrastructureNone))
	environment(cmd)
	return cmd
}

// overlay lays the flags that are set over a configuration.
func (f *controllerFlags) overlay(cmd *cobra.Command, c *configuration.Configuration) error {
	set := cmd.Flags().Changed
	if set("controller-name") {
		c.ControllerName = f.controllerName
	}
	if set("namespaces") {
		i := slices.IndexFunc(c.Sources, func(s configuration.Source) bool { return s.Kubernetes != nil })
		if i < 0 {
			return errors.New("--namespaces: the configuration has no source kubernetes")
		}
		c.Sources[i].Kubernetes = &configuration.Kubernetes{Namespaces: f.namespaces}
	}
	if set("infrastructure") {
		c.Infrastructure.Type = configuration.InfrastructureType(f.infrastructure)
	}
	if set("roles") {
		c.Roles = nil
		for _, r := range f.roles {
			c.Roles = append(c.Roles, configuration.Role(r))
		}
	}
	if set("proxy-image") {
		c.Infrastructure.Image = f.image
	}
	if set("proxy-image-pull-policy") {
		c.Infrastructure.ImagePullPolicy = f.pullPolicy
	}
	if set("leader-election") {
		c.LeaderElection.Disabled = !f.leaderElection
	}
	if set("log-level") {
		c.Log.Level = f.logLevel
	}
	if set("log-format") {
		c.Log.Format = f.logFormat
	}
	return c.Validate()
}

// load reads the configuration with the flags laid over it.
func (f *controllerFlags) load(cmd *cobra.Command) (loaded, error) {
	c, text, err := configuration.Load(f.config)
	if err != nil {
		return loaded{}, err
	}
	return loaded{c, text}, f.overlay(cmd, c)
}

// loaded is a configuration, with the content of the file that it comes from.
type loaded struct {
	*configuration.Configuration
	text []byte
}

// errReload ends a controller that is to start anew with another configuration.
var errReload = errors.New("the configuration has changed")

// runController runs a controller, and another one each time the configuration or the
// channel of the cluster's Gateway API changes.
func runController(cmd *cobra.Command, f controllerFlags) error {
	if err := checkAdmin(f.admin); err != nil {
		return err
	}
	self, err := f.self()
	if err != nil {
		return err
	}
	c, err := f.load(cmd)
	if err != nil {
		return usageError{err}
	}
	for first := true; ; first = false {
		next, err := f.serve(cmd, c, self, first)
		if !errors.Is(err, errReload) {
			return err
		}
		c = next
	}
}

// serve runs a controller until it is stopped, or is to start anew: then it returns the
// configuration to do so with, and errReload.
func (f *controllerFlags) serve(cmd *cobra.Command, c loaded, self cluster.Replica, first bool) (next loaded, err error) {
	logs := configuration.NewLogs(c.Log, os.Stderr)
	log := logs.For(configuration.LogControl)
	kubernetesLogs(logs.For(configuration.LogSource))
	rest, err := f.cluster()
	if err != nil {
		return next, err
	}
	ctx, stop := context.WithCancelCause(cmd.Context())
	defer stop(nil)
	log.Info("starting", "version", version, "controller_name", c.ControllerName, "roles", c.Roles, "replica", self.Name, "namespace", self.Namespace)
	follows := &following{log: log, logs: logs, inForce: c, told: make(chan error, 1), reload: func(c loaded) {
		next = c
		stop(errReload)
	}}
	if f.config != "" {
		go f.follow(ctx, cmd, follows)
	}
	options := cluster.Options{Config: c.Configuration, Refused: follows.refused.Load, Configured: follows.told, REST: rest, Self: self, Logs: logs, Admin: f.admin}
	controller, err := cluster.New(ctx, options)
	// Who has run already doesn't end because the API server is away for a while.
	for ; err != nil && !first && ctx.Err() == nil; controller, err = cluster.New(ctx, options) {
		log.Error("the controller can't start with the changed configuration; trying again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(startRetry):
		}
	}
	if err == nil {
		err = controller.Run(ctx)
	}
	if errors.Is(context.Cause(ctx), errReload) {
		return next, errReload
	}
	if errors.Is(err, cluster.ErrOtherChannel) {
		log.Info("the Gateway API's channel has changed; starting anew with it")
		return c, errReload
	}
	if err == nil {
		log.Info("stopped")
	}
	return next, err
}

// startRetry is the pause between two tries to start anew.
const startRetry = 5 * time.Second

// following is what becomes of changes of the configuration file.
type following struct {
	log     *slog.Logger
	logs    configuration.Logs
	inForce loaded
	// refused says that the file can't be used as it is now, and told is sent why; nil once it can again.
	refused atomic.Bool
	told    chan error
	// reload is called with another configuration that is to be started with.
	reload func(loaded)
}

// tell leaves in told what is true now.
func (w *following) tell(err error) {
	if was := w.refused.Swap(err != nil); !was && err == nil {
		return
	}
	select {
	case <-w.told: //nolint:errcheck // what was true before, and nobody has taken
	default:
	}
	w.told <- err
}

// follow watches the configuration file. Levels of logs change at once; all else needs a controller that starts anew.
func (f *controllerFlags) follow(ctx context.Context, cmd *cobra.Command, w *following) {
	watched := configuration.Watched{
		Refused: func(err error) {
			w.log.Error("the changed configuration is not used; the last good one stays in force", "error", err)
			w.tell(err)
		},
		Missed: func(err error) {
			w.log.Warn("a change of the configuration may not have been noticed", "file", f.config, "error", err)
		},
	}
	watched.Changed = func(c *configuration.Configuration, text []byte) {
		if err := f.overlay(cmd, c); err != nil {
			watched.Refused(err)
			return
		}
		w.tell(nil)
		if !c.SameButLevels(w.inForce.Configuration) {
			w.log.Info("the configuration has changed; starting anew with it", "file", f.config)
			w.reload(loaded{c, text})
			return
		}
		w.inForce = loaded{c, text}
		w.logs.SetLevels(c.Log)
		w.log.Info("the configuration is in force; only levels of logs may have changed", "file", f.config, "level", c.Log.Level)
	}
	if err := configuration.Watch(ctx, f.config, w.inForce.text, watched); err != nil {
		w.log.Error("changes of the configuration are not noticed", "file", f.config, "error", err)
	}
}

// cluster returns how to reach the API server.
func (f *controllerFlags) cluster() (*rest.Config, error) {
	if f.kubeconfig == "" && f.context == "" {
		if c, err := rest.InClusterConfig(); !errors.Is(err, rest.ErrNotInCluster) {
			return c, err
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster to serve: %w; run in a Pod, or name one with --kubeconfig", err)
	}
	return c, nil
}

// namespaceFile is where a Pod finds its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// self says which replica this is.
func (f *controllerFlags) self() (cluster.Replica, error) {
	r := cluster.Replica{
		Namespace: cmp.Or(f.podNamespace, os.Getenv("POD_NAMESPACE")),
		Name:      cmp.Or(f.podName, os.Getenv("POD_NAME")),
		IP:        cmp.Or(f.podIP, os.Getenv("POD_IP")),
	}
	if _, err := netip.ParseAddr(r.IP); err != nil && r.IP != "" {
		return r, usageError{fmt.Errorf("--pod-ip: %q is not an IP address", r.IP)}
	}
	if r.Namespace == "" {
		r.Namespace = "gatehouse-system"
		if text, err := os.ReadFile(namespaceFile); err == nil {
			r.Namespace = strings.TrimSpace(string(text))
		}
	}
	if r.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return r, fmt.Errorf("--pod-name is not set, and the host has no name: %w", err)
		}
		r.Name = host
	}
	return r, nil
}

// kubernetesLogs sends what the Kubernetes libraries log where ours goes.
func kubernetesLogs(log *slog.Logger) {
	l := logr.FromSlogHandler(log.Handler())
	klog.SetLogger(l)
	crlog.SetLogger(l)
}
