package cluster

import (
	"context"
	"crypto/tls"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/apply"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
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
	// states are those of fleets that others make; nil where this process makes them, or nobody of ours does.
	states *follower[infra.State]
}

// authorities is the ConfigMap with the certificates by which proxies know their controller, for those who make proxies.
const authorities = "gatehouse-ca"

// composeProvisioned makes a Cluster serve fleets of pods.
func (c *Cluster) composeProvisioned(ctx context.Context, channel string) error {
	p := &provisioned{cluster: c, fleets: fleets{places: c.config.Infrastructure.Places()}}
	published := ""
	if !c.config.MakesFleets() {
		published = authorities // else each fleet has it
	}
	p.identity = identity.NewAuthority(identity.Options{
		Client: c.direct, Published: published, Namespace: c.opts.Self.Namespace, Pod: c.opts.Self.Name, Service: c.config.Infrastructure.Service,
		RootLife: c.config.Identity.AuthorityLifetime.Duration, Life: c.config.Identity.ProxyLifetime.Duration,
		Log: c.opts.Logs.For(configuration.LogIdentity),
	})
	p.replicas = p.newReplicas()
	if c.config.Ports.FleetAPI != 0 {
		p.api = newFleetAPI(p)
	}
	if c.config.Apart() {
		p.states = &follower[infra.State]{board: c.states(), set: c.set, take: c.setFleet}
	}
	c.proxies, c.selection = p, everything{}
	return c.remember(ctx, channel)
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
	switch {
	case p.states != nil:
		asked := newPoster(c.asked(), c.pipeline, (*infra.Gateway).Asked)
		asked.early = func(now *infra.Asked, was infra.Asked) {
			if now.Refusing == nil { // proxies may not have come back yet
				now.Refusing = was.Refusing
			}
		}
		return append(list, followWork[infra.State]{p.states}, asked), nil
	case !c.config.MakesFleets():
		return list, nil
	}
	fleets, err := c.fleetWork(metrics, p.distribute, func(object.Name, *infra.State) {})
	if err != nil {
		return nil, err
	}
	return append(list, fleets), nil
}

// distribute tells those who make fleets by what proxies know their controller.
func (p *provisioned) distribute(ctx context.Context, fleets *apply.Fleets) error {
	select {
	case <-p.identity.Ready():
	case <-ctx.Done():
		return nil
	}
	for {
		changed := p.identity.Next()
		fleets.SetAuthorities(p.identity.Bundle())
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
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
		Client: p.cluster.direct, Namespaces: p.fleets.places.All, AnySource: p.cluster.config.Identity.AnyAddress, Log: p.cluster.opts.Logs.For(configuration.LogIdentity),
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
		Namespaces: p.fleets.places.All, AnySource: p.cluster.config.Identity.AnyAddress, Log: p.cluster.opts.Logs.For(configuration.LogIdentity),
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
