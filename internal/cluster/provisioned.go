package cluster

import (
	"context"
	"crypto/tls"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/apply"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/replicas"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// provisioned is where the proxies of `gatehouse controller` run: in pods of a fleet for
// each Gateway, that a replica which leads makes, and that find any replica.
type provisioned struct {
	cluster  *Cluster
	identity *identity.Authority
	replicas *replicas.Client
	fleets   fleets
	api      *fleetAPI // nil where it is off
}

// composeProvisioned makes a Cluster serve fleets of pods.
func (c *Cluster) composeProvisioned(ctx context.Context, channel string) error {
	p := &provisioned{cluster: c}
	published := ""
	if c.config.Infrastructure.Type == configuration.InfrastructureNone {
		published = "gatehouse-ca" // else each fleet has it
	}
	p.identity = identity.NewAuthority(identity.Options{
		Client: c.direct, Published: published, Namespace: c.opts.Self.Namespace, Pod: c.opts.Self.Name, Service: c.config.Infrastructure.Service,
		RootLife: c.config.Identity.AuthorityLifetime.Duration, Life: c.config.Identity.ProxyLifetime.Duration,
		Log: c.opts.Logs.For("identity"),
	})
	p.replicas = p.newReplicas()
	if c.config.Ports.FleetAPI != 0 {
		p.api = newFleetAPI(p)
	}
	c.proxies, c.selection = p, everything{}
	options := pipelineOptions(c.config, channel)
	options.Kinds, options.ControllerNamespace = c.kinds, c.opts.Self.Namespace
	c.pipeline = pipeline.New(options)
	return c.remember(ctx)
}

// everything is the selection of a process that serves all Gateways of its classes.
type everything struct{}

func (everything) take(b source.Batch) source.Batch { return b }

func (everything) statuses(map[object.Key]any) {}

func (everything) passed(func(object.Key, any)) {}

func (everything) owns() func(client.Object, *gwv1.ParentReference) bool { return nil }

func (everything) writes(object.Key) bool { return true }

func (p *provisioned) services() map[string]func(context.Context) error {
	services := map[string]func(context.Context) error{
		"identity": func(ctx context.Context) error { p.identity.Run(ctx); return nil },
		"xDS":      p.serveXDS,
		"API":      p.serveAPI,
		"replicas": p.replicas.Run,
	}
	if p.api != nil {
		services["fleet API"] = p.api.run
	}
	return services
}

// Committed notes which Gateways have a fleet.
func (p *provisioned) Committed(c *flow.Commit) {
	p.fleets.update(c, p.cluster.pipeline)
	for _, ch := range flow.Changes(c, p.cluster.pipeline.Fleets) {
		if ch.Had && !ch.Has {
			p.replicas.Forget(ch.Key)
		}
	}
}

// Published has nothing to do: proxies are told over xDS, fleets are the leader's.
func (p *provisioned) Published() {}

func (p *provisioned) heard(gateway object.Name, state xds.State) { p.replicas.Send(gateway, state) }

func (p *provisioned) ready() (bool, string) { return true, "" }

func (p *provisioned) ended(context.Context) {}

func (p *provisioned) stop() {}

// work keeps settings and classes, and makes fleets unless somebody else does.
func (p *provisioned) work(metrics prometheus.Registerer) ([]work, error) {
	c := p.cluster
	list := []work{
		newKeeper(c.memory(), c.pipeline, c.source, c.log),
		newFinalizers(c.direct, c.source.Live, c.pipeline, c.config.ControllerName, c.log),
		newMissingClass(c.pipeline, c.log),
		newClasses(c.direct, c.pipeline, c.config, c.log),
	}
	children, err := p.childrenWork(metrics)
	if err != nil {
		return nil, err
	}
	list = append(list, children)
	if p.api != nil {
		list = append(list, p.api.authority())
	}
	if c.config.Infrastructure.Type != configuration.InfrastructureKubernetes {
		return list, nil
	}
	fleets, err := apply.NewFleets(apply.FleetsOptions{
		Options: FleetOptions(c.config, c.opts.Self.Namespace),
		REST:    c.opts.REST, Client: c.direct, Namespaces: c.config.Cluster().Namespaces,
		Events: c.recorder, Log: c.opts.Logs.For("infra"), Registerer: metrics,
		OnState: func(gateway object.Name, s *infra.State) {
			c.loop.Call(c.running, func() {
				c.loop.Update(func(tx *flow.Tx) { c.pipeline.SetFleet(tx, gateway, s) })
			})
		},
	})
	if err != nil {
		return nil, err
	}
	return append(list, &fleetWork{
		Fleets: fleets, identity: p.identity,
		gatewayReader: newGatewayReader(c.pipeline.Unsettled, tableReader[object.Name, *infra.Gateway]{
			c.pipeline.Infrastructure, func(_ object.Name, fleet *infra.Gateway) { fleets.Set(fleet) }, fleets.Delete,
		}, fleets.Hold),
	}), nil
}

// fleetWork makes the fleets of Gateways.
type fleetWork struct {
	*apply.Fleets
	gatewayReader[*infra.Gateway]
	identity *identity.Authority
}

func (w *fleetWork) complete() { w.Complete() }

func (w *fleetWork) changed(object.Key) {}

func (w *fleetWork) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.Run(ctx) })
	group.Go(func() error { return w.distribute(ctx) })
	return group.Wait()
}

// distribute tells those who make fleets by what proxies know their controller.
func (w *fleetWork) distribute(ctx context.Context) error {
	select {
	case <-w.identity.Ready():
	case <-ctx.Done():
		return nil
	}
	for {
		changed := w.identity.Next()
		w.SetAuthorities(w.identity.Bundle())
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// FleetOptions are what all fleets of a controller in a namespace have in common.
func FleetOptions(c *configuration.Configuration, namespace string) infra.Options {
	in := c.Infrastructure
	return infra.Options{
		ControllerName: c.ControllerName, Image: in.Image, PullPolicy: corev1.PullPolicy(in.ImagePullPolicy),
		ControllerNamespace: namespace, ControllerService: in.Service,
		XDSPort: c.Ports.XDS, APIPort: c.Ports.API,
	}
}

// serveXDS serves proxies once there is a whole configuration.
func (p *provisioned) serveXDS(ctx context.Context) error {
	if !p.cluster.whole(ctx) {
		return nil
	}
	lis, err := p.cluster.listen(p.cluster.config.Ports.XDS, xdsLimits)
	if err != nil {
		return err
	}
	pods := identity.NewPods(identity.PodsOptions{
		Client: p.cluster.direct, AnySource: p.cluster.config.Identity.AnyAddress, Log: p.cluster.opts.Logs.For("identity"),
	})
	return p.cluster.server.ServeTLS(ctx, lis, xds.TLS{
		Config: p.identity.ServerTLS(tls.RequireAndVerifyClientCert, "h2"), Identify: p.identity.Proxy, Changed: p.identity.Next,
		Revision: infra.RevisionIn,
		Admit:    pods.Admit, AdmitAgain: func() xds.Admission { return pods.Again() },
	})
}

// serveAPI serves certificates to proxies, and leads the other replicas.
func (p *provisioned) serveAPI(ctx context.Context) error {
	if !p.cluster.whole(ctx) {
		return nil
	}
	lis, err := p.cluster.listen(p.cluster.config.Ports.API, apiLimits)
	if err != nil {
		return err
	}
	options := identity.ServerOptions{
		Authority: p.identity, Client: p.cluster.direct, Fleet: p.fleets.serviceAccount, Limits: p.fleets.limitsAccount,
		AnySource: p.cluster.config.Identity.AnyAddress, Log: p.cluster.opts.Logs.For("identity"),
	}
	if p.cluster.config.Infrastructure.Type == configuration.InfrastructureKubernetes { // else fleets are somebody else's
		options.Former = p.isFormer
	}
	server := identity.NewServer(options)
	p.cluster.registry.MustRegister(server.Collectors()...)
	server.HandleControllers("POST "+replicas.Path, p.fromReplicas())
	if p.api != nil {
		server.HandleControllers("GET "+replicas.ProxiesPath, p.api.board)
	}
	return server.Serve(ctx, lis)
}
