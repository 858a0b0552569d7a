package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

const (
	namespace     = "gatehouse-bench"      // of the backend, and of the Gateway that is made
	loadNamespace = "gatehouse-bench-load" // of what a shape makes; goes with it
)

// How several Gateways are measured, in the words of the public benchmark.
const (
	joined = "joined"
	split  = "split"
)

type options struct {
	mode                             string
	class, controller, image, binary string
	metrics, shardAbove              int
	attached, routes, scale          int
	changes, probes                  int
	iterations, sets, flips          int
	record, results                  string
	plots, page                      string
}

type bench struct {
	options
	cluster *cluster.Cluster
	client  client.WithWatch
	backend string // the address of its pod
	report  report
}

// target is a Gateway that is measured.
type target struct {
	key     client.ObjectKey
	address string
}

func (t *target) String() string { return t.key.String() }

func newBench(o options) (*bench, error) {
	c, err := cluster.Open()
	if err != nil {
		return nil, err
	}
	k, err := c.Client()
	if err != nil {
		return nil, err
	}
	return &bench{options: o, cluster: c, client: k}, nil
}

// setUp makes the backend, and a Gateway unless some are named, and waits for them.
func (b *bench) setUp(ctx context.Context, gateways string) ([]*target, error) {
	if err := b.tearDown(); err != nil {
		return nil, err
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "backend", Namespace: namespace},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: new(int64(0)),
				Containers: []corev1.Container{{
					Name: "echo", Image: b.image,
					Args: []string{"echo", "--listen", "one=0.0.0.0:8080", "--listen", "two=0.0.0.0:8081", "--listen", "three=0.0.0.0:8082"},
				}},
			},
		},
	} {
		if err := b.create(ctx, object); err != nil {
			return nil, err
		}
	}
	if err := cluster.Await(ctx, "the backend", func() error {
		var pod corev1.Pod
		if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "backend"}, &pod); err != nil {
			return err
		}
		if b.backend = pod.Status.PodIP; pod.Status.Phase != corev1.PodRunning || b.backend == "" {
			return fmt.Errorf("its pod is %s", pod.Status.Phase)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if gateways == "" {
		g, err := b.createGateway(ctx)
		if err != nil {
			return nil, err
		}
		gateways = namespace + "/" + g.Name
	}
	var targets []*target
	for name := range strings.SplitSeq(gateways, ",") {
		ns, name, ok := strings.Cut(name, "/")
		if !ok {
			return nil, fmt.Errorf("-gateways: %q is not namespace/name", ns)
		}
		t := &target{key: client.ObjectKey{Namespace: ns, Name: name}}
		if err := cluster.Await(ctx, t.String(), func() error { return b.find(ctx, t) }); err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// find sets the address of a Gateway, once connections to it are accepted: its load balancer comes to know of its
// proxies on a way of its own.
func (b *bench) find(ctx context.Context, t *target) error {
	var g gwv1.Gateway
	if err := b.client.Get(ctx, t.key, &g); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(g.Status.Conditions, string(gwv1.GatewayConditionProgrammed)) || len(g.Status.Addresses) == 0 {
		return fmt.Errorf("it is not programmed: %v", g.Status.Conditions)
	}
	t.address = fmt.Sprintf("%s:%d", g.Status.Addresses[0].Value, g.Spec.Listeners[0].Port)
	conn, err := b.cluster.Dial(ctx, "tcp", t.address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// createGateway makes the Gateway that is measured where none is named.
func (b *bench) createGateway(ctx context.Context) (*gwv1.Gateway, error) {
	all := &gwv1.RouteNamespaces{From: new(gwv1.NamespacesFromAll)}
	g := &gwv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Name: "gateway", Namespace: namespace},
		Spec: gwv1.GatewaySpec{
			GatewayClassName: gwv1.ObjectName(b.class),
			Listeners: []gwv1.Listener{{
				Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType, AllowedRoutes: &gwv1.AllowedRoutes{Namespaces: all},
			}},
			AllowedListeners: &gwv1.AllowedListeners{Namespaces: &gwv1.ListenerNamespaces{From: new(gwv1.NamespacesFromAll)}},
		},
	}
	if b.shardAbove >= 0 {
		g.Name = fmt.Sprintf("shard-above-%d", b.shardAbove)
		if err := b.client.Create(ctx, &v1alpha1.GatewayParameters{
			ObjectMeta: metav1.ObjectMeta{Name: g.Name, Namespace: namespace},
			Spec: v1alpha1.GatewayParametersSpec{Settings: v1alpha1.Settings{
				RouteTables: &v1alpha1.RouteTables{ShardAbove: new(int32(b.shardAbove))},
			}},
		}); err != nil {
			return nil, err
		}
		g.Spec.Infrastructure = &gwv1.GatewayInfrastructure{ParametersRef: &gwv1.LocalParametersReference{
			Group: gwv1.Group(v1alpha1.GroupVersion.Group), Kind: "GatewayParameters", Name: g.Name,
		}}
	}
	return g, b.client.Create(ctx, g)
}

// makeLoad makes the namespace of a shape, with the Service that routes share.
func (b *bench) makeLoad(ctx context.Context) error {
	if err := b.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: loadNamespace}}); err != nil {
		return err
	}
	return b.createService(ctx, "backend")
}

// create creates an object, also where another of its name is there already.
func (b *bench) create(ctx context.Context, object client.Object) error {
	return client.IgnoreAlreadyExists(b.client.Create(ctx, object))
}

// tearDown removes the namespaces, after an interrupt too.
func (b *bench) tearDown() error {
	ctx := context.Background()
	return errors.Join(cluster.RemoveNamespace(ctx, b.client, loadNamespace), cluster.RemoveNamespace(ctx, b.client, namespace))
}
