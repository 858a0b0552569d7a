package cluster

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/apply"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// fleetsAlone is where the proxies of a process run that has the role Infrastructure alone: it makes them, and they
// dial those who have the role Configuration.
type fleetsAlone struct {
	cluster *Cluster
	asked   *follower[infra.Asked]
}

// composeFleets makes a Cluster make fleets, and nothing else.
func (c *Cluster) composeFleets(ctx context.Context, channel string) error {
	c.selection = everything{}
	c.proxies = fleetsAlone{c, &follower[infra.Asked]{board: c.asked(), set: c.set, take: func(gateway object.Name, asked *infra.Asked) {
		c.loop.Call(c.running, func() {
			c.loop.Update(func(tx *flow.Tx) { c.pipeline.SetAsked(tx, gateway, asked) })
		})
	}}}
	return c.remember(ctx, channel)
}

// services read what is asked of fleets, also while this replica doesn't lead: a fleet must lose nothing since it is not
// known yet.
func (f fleetsAlone) services() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{"what is asked of fleets": func(ctx context.Context) error {
		f.asked.follow(ctx, func() { f.cluster.told(ctx) })
		return nil
	}}
}

func (fleetsAlone) Committed(*flow.Commit) {}

func (fleetsAlone) Published() {}

func (fleetsAlone) heard(object.Name, xds.State) {}

func (fleetsAlone) ready() (bool, string) { return true, "" }

func (fleetsAlone) ended(context.Context) {}

func (fleetsAlone) stop() {}

// work makes fleets, and tells of them.
func (f fleetsAlone) work(metrics prometheus.Registerer) ([]work, error) {
	c := f.cluster
	states := newPoster[infra.State](c.states(), c.pipeline, nil)
	fleets, err := c.fleetWork(metrics, f.distribute, func(gateway object.Name, s *infra.State) {
		if s != nil && *s == (infra.State{}) {
			s = nil
		}
		states.set(gateway, s)
	})
	if err != nil {
		return nil, err
	}
	return []work{fleets, states}, nil
}

// distribute tells those who make fleets by what proxies know their controller.
func (f fleetsAlone) distribute(ctx context.Context, fleets *apply.Fleets) error {
	c := f.cluster
	followConfigMap(ctx, c.set, object.Name{Namespace: c.opts.Self.Namespace, Name: authorities}, func(data map[string]string) {
		if pem := data[infra.AuthoritiesKey]; pem != "" {
			fleets.SetAuthorities([]byte(pem))
		}
	})
	return nil
}

// fleetWork makes the fleets of Gateways.
type fleetWork struct {
	*apply.Fleets
	gatewayReader[*infra.Gateway]
	distribute func(context.Context, *apply.Fleets) error
}

// fleetWork returns what makes fleets. distribute sets by what their proxies know the controller, and tell is told of
// the state of each.
func (c *Cluster) fleetWork(
	metrics prometheus.Registerer, distribute func(context.Context, *apply.Fleets) error, tell func(object.Name, *infra.State),
) (*fleetWork, error) {
	fleets, err := apply.NewFleets(apply.FleetsOptions{
		Options: FleetOptions(c.config, c.opts.Self.Namespace),
		REST:    c.opts.REST, Client: c.direct, Namespaces: c.config.Cluster().Namespaces,
		Events: c.recorder, Log: c.opts.Logs.For(configuration.LogInfra), Registerer: metrics,
		OnState: func(gateway object.Name, s *infra.State) {
			c.setFleet(gateway, s)
			tell(gateway, s)
		},
	})
	if err != nil {
		return nil, err
	}
	return &fleetWork{
		Fleets: fleets, distribute: distribute,
		gatewayReader: newGatewayReader(c.pipeline.Unsettled, tableReader[object.Name, *infra.Gateway]{
			c.pipeline.Infrastructure, func(_ object.Name, fleet *infra.Gateway) { fleets.Set(fleet) }, fleets.Delete,
		}, fleets.Hold),
	}, nil
}

// setFleet takes in what there is to say of a Gateway's fleet; nil for none.
func (c *Cluster) setFleet(gateway object.Name, s *infra.State) {
	c.loop.Call(c.running, func() {
		c.loop.Update(func(tx *flow.Tx) { c.pipeline.SetFleet(tx, gateway, s) })
	})
}

func (w *fleetWork) complete() { w.Complete() }

func (w *fleetWork) changed(object.Key) {}

func (w *fleetWork) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.Run(ctx) })
	group.Go(func() error { return w.distribute(ctx, w.Fleets) })
	return group.Wait()
}

// FleetOptions are what all fleets of a controller in a namespace have in common.
func FleetOptions(c *configuration.Configuration, namespace string) infra.Options {
	in := c.Infrastructure
	return infra.Options{
		ControllerName: c.ControllerName, Image: in.Image, PullPolicy: corev1.PullPolicy(in.ImagePullPolicy),
		ControllerNamespace: namespace, ControllerService: in.Service,
		XDSPort: c.Ports.XDS, APIPort: c.Ports.API, Places: in.Places(),
	}
}
