// Colorpolicy is a controller of policies of a kind of its own, which stands on the graph of
// network objects of package topology. It keeps a list of the color of every path from a
// Gateway to a rule of a route, and tells each policy where it is in force and who has taken
// its place.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/pkg/topology"
	"github.com/gatehouse-dev/gatehouse/pkg/topology/watch"
)

const controllerName = "example.com/colors"

func main() {
	ctx := ctrl.SetupSignalHandler()
	config, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctx, config, func(text string) { fmt.Println(text) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// controller writes down what follows from the graph.
type controller struct {
	cache  cache.Cache
	client client.Client
	colors *topology.Policies[*ColorPolicy, string]
	paint  func(text string) // what this controller's data plane would be told
}

// run serves the policies of a cluster until ctx ends.
func run(ctx context.Context, config *rest.Config, paint func(string)) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, gwv1.Install, addToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	objects, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(objects.Start(ctx)) }()

	graph := topology.New(topology.Options{})
	c := &controller{objects, writer, topology.AddPolicies(graph, colorPolicies), paint}
	return watch.Run(ctx, objects, scheme, graph, append(watch.Network(), &ColorPolicy{}), c.changed)
}

// changed acts on what an update has changed, and on nothing else.
func (c *controller) changed(ctx context.Context, ch *topology.Changes) error {
	for _, change := range c.colors.Changes(ch) {
		text := change.Path.String() + ":"
		for _, r := range change.After.Rules() {
			text += fmt.Sprintf(" %s is %s by %s", r.Name, r.Rule, r.From.Policy)
		}
		c.paint(text)
	}
	for _, p := range c.colors.Concerned(ch) {
		if err := c.tell(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// tell writes a policy's status, if it is not what it should be.
func (c *controller) tell(ctx context.Context, p topology.Node) error {
	o := &ColorPolicy{}
	if err := c.cache.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Name}, o); err != nil {
		return client.IgnoreNotFound(err)
	}
	var entries []gwv1.PolicyAncestorStatus
	for _, a := range c.colors.Ancestors(p.Namespace, p.Name) {
		entries = append(entries, a.Entry(controllerName, o.Generation))
	}
	merged, different := topology.MergeAncestors(o.Status.Ancestors, controllerName, entries)
	if !different {
		return nil
	}
	was := o.DeepCopyObject().(*ColorPolicy)
	o.Status.Ancestors = merged
	return client.IgnoreNotFound(c.client.Status().Patch(ctx, o, client.MergeFrom(was)))
}
