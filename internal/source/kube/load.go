package kube

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// Reader reads a cluster once, to answer a person's question. What the person may
// not read is left out, with a problem that says so.
type Reader struct {
	client client.Reader
	mapper apimeta.RESTMapper
	kinds  *kind.Table
	types  func(client.Object)
	// namespace is read where the right to read all is missing.
	namespace string
}

// The keys of a Reader's problems.
const (
	listProblems    = "cluster"
	contentProblems = "cluster contents"
)

// Open makes a Reader. Where objects of all namespaces may not be read, those of the
// namespace are.
func Open(config *rest.Config, namespace string) (*Reader, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the server's own limits do
	scheme := runtime.NewScheme()
	kinds := kind.All
	for _, add := range []func(*runtime.Scheme) error{kinds.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	complete := transform(kinds.Types(), stripMeta)
	return &Reader{client: c, mapper: c.RESTMapper(), kinds: kinds, namespace: namespace, types: func(o client.Object) { _, _ = complete(o) }}, nil
}

// Lease returns a Lease.
func (r *Reader) Lease(ctx context.Context, name object.Name) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	return lease, r.client.Get(ctx, client.ObjectKey(name), lease)
}

// ConfigMap returns a ConfigMap.
func (r *Reader) ConfigMap(ctx context.Context, name object.Name) (*corev1.ConfigMap, error) {
	config := &corev1.ConfigMap{}
	return config, r.client.Get(ctx, client.ObjectKey(name), config)
}

// Deployments returns those with labels, of all namespaces or, who may not read these, of the
// Reader's.
func (r *Reader) Deployments(ctx context.Context, labels map[string]string) ([]appsv1.Deployment, error) {
	list := &appsv1.DeploymentList{}
	err := r.client.List(ctx, list, client.MatchingLabels(labels))
	if apierrors.IsForbidden(err) && r.namespace != "" {
		err = r.client.List(ctx, list, client.MatchingLabels(labels), client.InNamespace(r.namespace))
	}
	return list.Items, err
}

// Labelled returns the objects of any kind that have a label, and whether they are in namespaces; of those of
// the Reader's namespace only, where not all may be read. The error of a kind that doesn't exist is a NoMatch error.
func (r *Reader) Labelled(ctx context.Context, of schema.GroupVersionKind, label string) (list []unstructured.Unstructured, namespaced bool, err error) {
	mapping, err := r.mapper.RESTMapping(of.GroupKind(), of.Version)
	if err != nil {
		return nil, false, err
	}
	namespaced = mapping.Scope.Name() == apimeta.RESTScopeNameNamespace
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(of)
	err = r.client.List(ctx, all, client.HasLabels{label})
	if apierrors.IsForbidden(err) && namespaced && r.namespace != "" {
		err = r.client.List(ctx, all, client.HasLabels{label}, client.InNamespace(r.namespace))
	}
	return all.Items, namespaced, err
}

// Channel returns the Gateway API's channel that the cluster has, as Channel does.
// Who may not ask is told of the standard one's objects.
func (r *Reader) Channel(ctx context.Context) (string, error) {
	channel, err := Channel(ctx, r.client)
	if apierrors.IsForbidden(errors.Unwrap(err)) {
		return "", nil
	}
	return channel, err
}

// Load reads all objects of the kinds that a Source watches, but contents. The error
// is about the cluster as a whole.
func (r *Reader) Load(ctx context.Context, channel string) (source.Batch, error) {
	var out source.Batch
	var problems []source.Problem
	some := map[object.Kind]bool{}
	for k := range r.kinds.Rows() {
		if k.For != (object.Kind{}) && !some[k.For] {
			continue
		}
		if k.Reading == kind.ByName || k.Channel == kind.ExperimentalChannel && channel != Experimental {
			continue
		}
		list, problem, err := r.loadKind(ctx, k)
		if err != nil {
			return source.Batch{}, fmt.Errorf("read %s: %w", k, err)
		}
		out.Set = append(out.Set, list...)
		some[k.Kind] = len(list) > 0
		if problem != "" {
			problems = append(problems, source.Problem{Key: object.Key{Kind: k.Kind}, Reason: source.Unread, Message: problem})
		}
	}
	out.Foreign = r.loadForeign(ctx)
	out.Problems = map[string][]source.Problem{listProblems: problems}
	return out, nil
}

// loadKind reads a kind in its best version.
func (r *Reader) loadKind(ctx context.Context, k *kind.Descriptor) (list []source.Object, problem string, err error) {
	for _, v := range k.Watched() {
		list, err := r.list(ctx, k, v)
		switch {
		case err == nil:
			return list, "", nil
		case notServed(err):
		case !apierrors.IsForbidden(err):
			return nil, "", err
		case k.Scope == kind.ClusterScoped || r.namespace == "":
			return nil, "not read: " + err.Error(), nil
		default:
			list, here := r.list(ctx, k, v, client.InNamespace(r.namespace))
			if here != nil {
				return nil, "not read: " + err.Error(), nil //nolint:nilerror // it is told
			}
			return list, "read in namespace " + r.namespace + " only: " + err.Error(), nil
		}
	}
	if k.Kind == kind.GatewayClass {
		return nil, "the cluster doesn't have the Gateway API: install its CustomResourceDefinitions", nil
	}
	return nil, "", nil
}

// page is how many objects are asked for at a time.
const page = 500

func (r *Reader) list(ctx context.Context, k *kind.Descriptor, v kind.Version, opts ...client.ListOption) ([]source.Object, error) {
	var out []source.Object
	next := ""
	for {
		list := v.List()
		if err := r.client.List(ctx, list, append(opts, client.Limit(page), client.Continue(next))...); err != nil {
			return nil, err
		}
		err := apimeta.EachListItem(list, func(item runtime.Object) error {
			o, ok := item.(client.Object)
			if !ok || definition(k) && !OfGatewayAPI(o) {
				return nil
			}
			r.types(o)
			if m, ok := o.(*metav1.PartialObjectMetadata); ok {
				m.TypeMeta = k.TypeMeta(v.Name)
			}
			if v.Convert != nil {
				o = v.Convert(o)
			}
			out = append(out, o)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if next = list.GetContinue(); next == "" {
			return out, nil
		}
	}
}

// Contents reads Secrets and ConfigMaps. Those that don't exist are left out.
func (r *Reader) Contents(ctx context.Context, secrets, configMaps []object.Name) source.Batch {
	var out source.Batch
	var problems []source.Problem
	read := func(of object.Kind, names []object.Name) {
		d := r.kinds.Of(of)
		denied := 0
		var first error
		for _, n := range names {
			o := d.New()
			switch err := r.client.Get(ctx, client.ObjectKey{Namespace: n.Namespace, Name: n.Name}, o); {
			case err == nil:
				stripMeta(o)
				setType(o, d.TypeMeta(d.Versions[0].Name))
				out.Set = append(out.Set, o)
			case client.IgnoreNotFound(err) != nil:
				if denied++; first == nil {
					first = err
				}
			}
		}
		if denied > 0 {
			problems = append(problems, source.Problem{
				Key: object.Key{Kind: of}, Reason: source.Unread,
				Message: fmt.Sprintf("%d of %d can't be read, and count as missing: %v", denied, len(names), first),
			})
		}
	}
	read(kind.Secret, secrets)
	read(kind.ConfigMap, configMaps)
	out.Problems = map[string][]source.Problem{contentProblems: problems}
	return out
}
