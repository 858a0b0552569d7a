package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/cluster"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
)

type staticFlags struct {
	class                       classFlags
	gateway                     string
	classStatus                 bool
	metricsPort, healthPort     int
	metricsDisable              bool
	healthDisable               bool
	electionDisable             bool
	electionLock                string
	envoy, stateDir, kubeconfig string
	concurrency                 int
	drain                       time.Duration
	logs                        logFlags
}

func newStaticMode() *cobra.Command {
	var f staticFlags
	cmd := &cobra.Command{
		Use:   "static-mode --gateway-ctlr-name DOMAIN/PATH --gatewayclass NAME [--gateway NAMESPACE/NAME]",
		Short: "Serve one Gateway of a Kubernetes cluster with an Envoy in the same pod",
		Long: `Serve one Gateway of a Kubernetes cluster: control plane and Envoy in one pod, for
this Gateway alone. Without --gateway it is the oldest one of the class; others of the
class are told so.

The Gateway's address is the pod's, POD_IP in the environment; POD_NAMESPACE and
POD_NAME name the pod. Listeners have the ports that the Gateway says, so ports below
1024 need the sysctl net.ipv4.ip_unprivileged_port_start.`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runStatic(cmd, f) },
	}
	fl := cmd.Flags()
	fl.Var(checked{&f.gateway, checkGateway}, "gateway", "the one Gateway to serve, as NAMESPACE/NAME (default: the oldest of the class)")
	fl.BoolVar(&f.classStatus, "update-gatewayclass-status", true, "write the status of the GatewayClass")
	boundedVar(fl, &f.metricsPort, "metrics-port", 9113, leastPort, maxPort, "port of the metrics, 1024 to 65535")
	fl.BoolVar(&f.metricsDisable, "metrics-disable", false, "serve no metrics")
	boundedVar(fl, &f.healthPort, "health-port", 8081, leastPort, maxPort, "port of /healthz and /readyz, 1024 to 65535")
	fl.BoolVar(&f.healthDisable, "health-disable", false, "serve neither")
	fl.BoolVar(&f.electionDisable, "leader-election-disable", false, "write status without being elected, where there is one pod")
	fl.StringVar(&f.electionLock, "leader-election-lock-name", "gatehouse-leader-election-lock", "name of the Lease; each Gateway needs its own")
	fl.StringVar(&f.envoy, "envoy", "", "path of the Envoy binary (default: the cache of 'gatehouse envoy install', PATH)")
	fl.StringVar(&f.stateDir, "state-dir", "/var/run/gatehouse", "directory for sockets and Envoy's log")
	fl.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file, to run outside of the cluster (default: the Pod's ServiceAccount, else kubectl's rules)")
	boundedVar(fl, &f.concurrency, "concurrency", 0, 0, maxConcurrency, "worker threads of Envoy (default: one per CPU)")
	boundedVar(fl, &f.drain, "drain-timeout", 30*time.Second, 0, maxDrain, "how long clients may finish when it stops")
	f.logs.define(cmd)
	f.class.define(cmd)
	return cmd
}

func (f *staticFlags) check() error {
	if f.metricsPort == f.healthPort && !f.metricsDisable && !f.healthDisable {
		return usageError{fmt.Errorf("--metrics-port and --health-port are both %d", f.metricsPort)}
	}
	if !filepath.IsAbs(f.stateDir) {
		return usageError{fmt.Errorf("--state-dir: %q is not an absolute path", f.stateDir)}
	}
	return f.logs.check()
}

// configuration is the flags as a Configuration says them.
func (f *staticFlags) configuration() (*configuration.Configuration, error) {
	c := configuration.Default()
	c.ControllerName = f.class.controller
	c.Infrastructure.Type = configuration.InfrastructureNone
	c.LeaderElection.Name, c.LeaderElection.Disabled = f.electionLock, f.electionDisable
	c.Ports.Metrics, c.Ports.Health = f.metricsPort, f.healthPort
	if f.metricsDisable {
		c.Ports.Metrics = 0
	}
	if f.healthDisable {
		c.Ports.Health = 0
	}
	c.Log.Format, c.Log.Level = f.logs.format, f.logs.level
	if err := c.Validate(); err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

func runStatic(cmd *cobra.Command, f staticFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	address, err := podIP()
	if err != nil {
		return err
	}
	self := cluster.Replica{IP: address.String()}
	if self.Namespace, err = podVariable("POD_NAMESPACE"); err != nil {
		return err
	}
	if self.Name, err = podVariable("POD_NAME"); err != nil {
		return err
	}
	c, err := f.configuration()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	binary, err := proxy.Find(ctx, proxy.FindOptions{Explicit: f.envoy})
	if err != nil {
		return err
	}
	rest, err := (&controllerFlags{kubeconfig: f.kubeconfig}).cluster()
	if err != nil {
		return err
	}
	logs := configuration.NewLogs(c.Log, cmd.ErrOrStderr())
	log := logs.For(configuration.LogControl)
	kubernetesLogs(logs.For(configuration.LogSource))
	static := &cluster.Static{
		Class: f.class.name, ClassStatus: f.classStatus, Address: address,
		Envoy: binary, Concurrency: f.concurrency, StateDir: f.stateDir, DrainTimeout: f.drain,
		Output: envoyLog{log, false, ctx}.take,
	}
	if cmd.Flags().Changed("gateway") {
		static.Gateway, _ = object.ParseName(f.gateway) // checkGateway has let it through
	}
	log.Info("starting", "version", version, "class", static.Class, "controller_name", c.ControllerName,
		"gateway", f.gateway, "address", address.String(), "envoy_version", binary.Version)
	process, err := cluster.New(ctx, cluster.Options{Config: c, REST: rest, Self: self, Logs: logs, Static: static})
	if err != nil {
		return err
	}
	if err := process.Run(ctx); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}
