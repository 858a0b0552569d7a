package provisionermode

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwfeatures "sigs.k8s.io/gateway-api/pkg/features"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
)

// Options describe a provisioner.
type Options struct {
	// ControllerName is what the GatewayClass must name.
	ControllerName string
	// Class is the one GatewayClass whose Gateways are served.
	Class string
	// Namespace is where Deployments are made.
	Namespace string
	// Image and PullPolicy are those of the Gateways' processes.
	Image, PullPolicy string
	// REST leads to the API server; nil is as kubectl and pods find it.
	REST *rest.Config
	Log  *slog.Logger
}

// provisioner is one run.
type provisioner struct {
	o      Options
	client client.Client
	made   map[object.Name]bool // Gateways that have a Deployment; the one worker's
	// features are those that the class supports.
	features []gwv1.SupportedFeature
}

// Run provisions until ctx ends. Errors are those of the start.
func Run(ctx context.Context, o Options) error {
	if o.REST == nil {
		var err error
		if o.REST, err = ctrlconfig.GetConfig(); err != nil {
			return err
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, gwv1.Install} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	m, err := manager.New(o.REST, manager.Options{
		Scheme:  scheme,
		Logger:  logr.FromSlogHandler(o.Log.Handler()),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		// Only one runs in a process, except in tests.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return err
	}
	channel, err := kube.Channel(ctx, m.GetAPIReader())
	if err != nil {
		return err
	}
	p := &provisioner{o: o, client: m.GetClient(), made: map[object.Name]bool{}}
	if p.features, err = supportedBy(m.GetRESTMapper(), gwfeatures.FeatureChannel(channel)); err != nil {
		return err
	}
	leftovers, err := p.leftovers(ctx, m.GetAPIReader())
	if err != nil {
		return err
	}
	for _, gateway := range leftovers {
		p.made[gateway] = true
	}
	if err := p.watch(m, leftovers); err != nil {
		return err
	}
	return m.Start(ctx)
}

func (p *provisioner) watch(m manager.Manager, leftovers []object.Name) error {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(kube.DefinitionKind)
	err := builder.ControllerManagedBy(m).Named("gateways").For(&gwv1.Gateway{}).
		Watches(&gwv1.GatewayClass{}, handler.EnqueueRequestsFromMapFunc(p.gatewaysOf)).
		Watches(definition, handler.EnqueueRequestsFromMapFunc(p.gatewaysBy)).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			for _, gateway := range leftovers {
				queue.Add(request(gateway))
			}
			return nil
		})).
		Complete(reconcile.Func(p.reconcileGateway))
	if err != nil {
		return fmt.Errorf("watch Gateways: %w", err)
	}
	err = builder.ControllerManagedBy(m).Named("classes").For(&gwv1.GatewayClass{}).
		Watches(definition, handler.EnqueueRequestsFromMapFunc(p.classesBy)).
		Complete(reconcile.Func(p.reconcileClass))
	if err != nil {
		return fmt.Errorf("watch GatewayClasses: %w", err)
	}
	return nil
}

// gatewaysOf names all Gateways, when the class is ours.
func (p *provisioner) gatewaysOf(ctx context.Context, class client.Object) []reconcile.Request {
	if class.GetName() != p.o.Class {
		return nil
	}
	return p.gateways(ctx)
}

// gatewaysBy names all Gateways, when a definition of the Gateway API has changed.
func (p *provisioner) gatewaysBy(ctx context.Context, definition client.Object) []reconcile.Request {
	if !kube.OfGatewayAPI(definition) {
		return nil
	}
	return p.gateways(ctx)
}

// gateways names all of them: those that may have left our class too.
func (p *provisioner) gateways(ctx context.Context) []reconcile.Request {
	var all gwv1.GatewayList
	if err := p.client.List(ctx, &all); err != nil {
		p.o.Log.Error("the Gateways can't be listed", "error", err)
		return nil
	}
	var out []reconcile.Request
	for i := range all.Items {
		out = append(out, request(object.Name{Namespace: all.Items[i].Namespace, Name: all.Items[i].Name}))
	}
	return out
}

// classesBy names all GatewayClasses, when a definition of the Gateway API has changed.
func (p *provisioner) classesBy(ctx context.Context, definition client.Object) []reconcile.Request {
	if !kube.OfGatewayAPI(definition) {
		return nil
	}
	var all gwv1.GatewayClassList
	if err := p.client.List(ctx, &all); err != nil {
		p.o.Log.Error("the GatewayClasses can't be listed", "error", err)
		return nil
	}
	var out []reconcile.Request
	for i := range all.Items {
		out = append(out, request(object.Name{Name: all.Items[i].Name}))
	}
	return out
}

func request(gateway object.Name) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: gateway.Namespace, Name: gateway.Name}}
}
