package topology

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Object is an object of Kubernetes, of a Go type or unstructured.
type Object interface {
	metav1.Object
	runtime.Object
}

// Options say which part of the objects is looked at.
type Options struct {
	// ControllerName leaves out the Gateways of other controllers' classes; empty for none.
	ControllerName string
	// ImplicitClass is the name of a class that needs no GatewayClass, as where objects are
	// in files; empty for none.
	ImplicitClass string
	// Experimental says that the objects have the fields of the Gateway API's experimental
	// channel.
	Experimental bool
}

// Graph is the network objects and the policies on them.
type Graph struct {
	engine *flow.Engine
	inputs *topology.Inputs
	graph  *topology.Graph
	// implicitClass needs no GatewayClass.
	implicitClass string
	others        map[object.Kind]other
	// policies yield the policies of every kind with their targets.
	policies []func(c *flow.Ctx, yield func(policy, target Node))

	gateways  *flow.Index[string, object.Name, *topology.Gateway]                             // by class
	listeners *flow.Index[object.Name, topology.ListenerKey, *topology.Listener]              // by Gateway
	attached  *flow.Index[topology.ListenerKey, topology.AttachmentKey, *topology.Attachment] // by listener
	backends  *flow.Index[object.Key, object.Key, *topology.Route]                            // by what rules refer to
	linked    *flow.Index[Node, object.Key, *linked]                                          // by parent
	objects   *flow.Input[object.Key, *linked]
}

// other is a kind that somebody else has declared.
type other struct {
	// takes reports whether an object without a kind in its TypeMeta is of this one.
	takes  func(Object) bool
	set    func(*flow.Tx, object.Key, Object)
	delete func(*flow.Tx, object.Key)
	exists func(*flow.Ctx, object.Key) bool
}

// New returns a graph of no objects.
func New(o Options) *Graph {
	e := flow.New()
	in := topology.NewInputs(e, kind.All)
	g := &Graph{engine: e, inputs: in, implicitClass: o.ImplicitClass, others: map[object.Kind]other{}, graph: topology.New(e, in, topology.Options{
		ControllerName: o.ControllerName, AnyController: o.ControllerName == "", ImplicitClass: o.ImplicitClass,
		AnyPolicy: true, Provisioned: true, AnyName: true, Experimental: o.Experimental,
	})}
	g.gateways = flow.NewIndex(g.graph.Gateways,
		func(_ object.Name, gw *topology.Gateway, yield func(string)) { yield(gw.Class) }, object.Name.Compare)
	ofGateway := func(k topology.ListenerKey, _ *topology.Listener, yield func(object.Name)) { yield(k.Gateway()) }
	g.listeners = flow.NewIndex(g.graph.Listeners, ofGateway, topology.ListenerKey.Compare)
	g.listeners.Also(g.graph.SetListeners)
	g.attached = flow.NewIndex(g.graph.Attachments,
		func(k topology.AttachmentKey, _ *topology.Attachment, yield func(topology.ListenerKey)) {
			yield(k.Listener)
		},
		topology.AttachmentKey.Compare)
	g.backends = flow.NewIndex(g.graph.Routes,
		func(_ object.Key, r *topology.Route, yield func(object.Key)) {
			for i := range r.Rules {
				referents(r, i, false, func(n Node) { yield(n.key()) })
			}
		}, object.Key.Compare)
	g.objects = flow.NewInput[object.Key, *linked](e, "linked-objects", flow.Equal(flow.Same[*linked]))
	g.linked = flow.NewIndex(g.objects, func(_ object.Key, l *linked, yield func(Node)) {
		for _, p := range l.parents {
			yield(p)
		}
	}, object.Key.Compare)
	g.policies = append(g.policies, g.builtIn)
	flow.Watch(g.graph.Attachments)
	flow.Watch(g.inputs.Routes)
	return g
}

// Tx is a change of objects under way.
type Tx struct {
	g  *Graph
	tx *flow.Tx
}

// Update changes objects, all at once for whoever reads, and says what follows from it.
// Kinds are declared before the first Update.
func (g *Graph) Update(change func(tx *Tx)) *Changes {
	return &Changes{g: g, commit: g.engine.Update(func(tx *flow.Tx) { change(&Tx{g, tx}) })}
}

// Set adds objects, or puts them in the place of those of their names. An object that was
// given before is no change, even if it was written to since. The objects of kinds that are
// neither the Gateway API's nor declared are left out and told.
func (tx *Tx) Set(objects ...Object) error {
	var problems []error
	for _, o := range objects {
		if err := tx.set(o); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

func (tx *Tx) set(o Object) error {
	name := object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}
	if of, ok := tx.g.kindOf(o); ok {
		tx.g.others[of].set(tx.tx, object.Key{Kind: of, Name: name}, o)
		return nil
	}
	if _, ok := tx.g.inputs.KeyOf(o); !ok {
		return fmt.Errorf("%s %s: nobody has declared the kind of %T", o.GetObjectKind().GroupVersionKind().GroupKind(), name, o)
	}
	tx.g.inputs.Apply(tx.tx, source.Batch{Set: []source.Object{o}})
	return nil
}

// kindOf returns the declared kind of an object, if it is of one.
func (g *Graph) kindOf(o Object) (object.Kind, bool) {
	if gk := o.GetObjectKind().GroupVersionKind().GroupKind(); gk.Kind != "" {
		of := object.KindOf(gk.Group, gk.Kind)
		_, ok := g.others[of]
		return of, ok
	}
	for of, other := range g.others {
		if other.takes(o) {
			return of, true
		}
	}
	return object.Kind{}, false
}

// Delete removes objects. It is no mistake if there are none.
func (tx *Tx) Delete(objects ...Node) {
	for _, n := range objects {
		k := n.key()
		if other, ok := tx.g.others[k.Kind]; ok {
			other.delete(tx.tx, k)
			continue
		}
		tx.g.inputs.Apply(tx.tx, source.Batch{Deleted: []object.Key{k}})
	}
}

// declare makes a kind known.
func (g *Graph) declare(of object.Kind, o other) {
	if _, twice := g.others[of]; twice || g.inputs.Kinds().Of(of) != nil {
		panic(fmt.Sprintf("topology: the kind %s is declared twice", of))
	}
	g.others[of] = o
}

// Changes is what follows from an Update.
type Changes struct {
	g      *Graph
	commit *flow.Commit
}

// Version counts the updates.
func (c *Changes) Version() uint64 { return c.commit.Version }

// Err returns what went wrong in functions that were given to the graph: it is as if the
// objects concerned had not been changed.
func (c *Changes) Err() error {
	var problems []error
	for _, f := range c.commit.Failures {
		problems = append(problems, f)
	}
	return errors.Join(problems...)
}
