package cluster

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gatehouse-dev/gatehouse/internal/apply"
	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// childrenWork makes the objects of blueprints.
type childrenWork struct {
	*apply.Children
	gatewayReader[*blueprint.Children]
	ended func() // when nobody looks at the objects any more
}

func (p *provisioned) childrenWork(metrics prometheus.Registerer) (*childrenWork, error) {
	c := p.cluster
	update := func(change func(*flow.Tx)) {
		c.loop.Call(c.running, func() { c.loop.Update(change) })
	}
	children, err := apply.NewChildren(apply.ChildrenOptions{
		REST: c.opts.REST, Client: c.direct, Namespace: c.opts.Self.Namespace, Namespaces: c.config.Cluster().Namespaces, ControllerName: c.config.ControllerName,
		Events: c.recorder, Log: c.opts.Logs.For(configuration.LogInfra), Registerer: metrics,
		OnLive: func(ref blueprint.Ref, o *unstructured.Unstructured) {
			update(func(tx *flow.Tx) { c.pipeline.SetChild(tx, ref, o) })
		},
		OnScope: func(of schema.GroupVersionKind, namespaced *bool) {
			update(func(tx *flow.Tx) { c.pipeline.SetScope(tx, of, namespaced) })
		},
		OnMade: func(gateway object.Name, made map[blueprint.Place][]blueprint.Ref) {
			update(func(tx *flow.Tx) { c.pipeline.SetMade(tx, gateway, made) })
		},
		OnProblems: func(gateway object.Name, problems map[blueprint.Ref]string) {
			update(func(tx *flow.Tx) { c.pipeline.SetChildProblems(tx, gateway, problems) })
		},
	})
	if err != nil {
		return nil, err
	}
	return &childrenWork{children, newGatewayReader(c.pipeline.Unsettled, tableReader[object.Name, *blueprint.Children]{
		c.pipeline.Children, func(_ object.Name, ch *blueprint.Children) { children.Set(ch) }, children.Delete,
	}, func(*blueprint.Children) {}), func() {
		c.loop.Call(c.running, func() { c.loop.Update(c.pipeline.ForgetChildren()) })
	}}, nil
}

func (w *childrenWork) complete() { w.Complete() }

func (w *childrenWork) changed(object.Key) {}

func (w *childrenWork) run(ctx context.Context) error {
	defer w.ended()
	return w.Run(ctx)
}
