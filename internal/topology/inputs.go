package topology

import (
	"fmt"
	"reflect"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// Inputs are the tables of objects as the sources give them. Two objects are
// equal when they are one: a source hands over a new object for every change and
// the same one for none.
type Inputs struct {
	Classes      *flow.Input[string, *gwv1.GatewayClass]
	Gateways     *flow.Input[object.Name, *gwv1.Gateway]
	ListenerSets *flow.Input[object.Name, *gwv1.ListenerSet]
	Routes       *flow.Input[object.Key, RouteObject] // of all kinds
	Services     *flow.Input[object.Name, *corev1.Service]
	Imports      *flow.Input[object.Name, *mcsv1beta1.ServiceImport]
	Slices       *flow.Input[object.Name, *discoveryv1.EndpointSlice]
	Secrets      *flow.Input[object.Name, *corev1.Secret]
	ConfigMaps   *flow.Input[object.Name, *corev1.ConfigMap]
	Namespaces   *flow.Input[string, *corev1.Namespace]
	Grants       *flow.Input[object.Name, *gwv1.ReferenceGrant]
	// Definitions are the CustomResourceDefinitions of the Gateway API; files have none.
	Definitions *flow.Input[string, *metav1.PartialObjectMetadata]

	TrustBundles           *flow.Input[string, *certificatesv1.ClusterTrustBundle]
	BackendTLSPolicies     *flow.Input[object.Name, *gwv1.BackendTLSPolicy]
	BackendTrafficPolicies *flow.Input[object.Name, *gwxv1alpha1.XBackendTrafficPolicy]
	AuthPolicies           *flow.Input[object.Name, *v1alpha1.AuthPolicy]
	RateLimitPolicies      *flow.Input[object.Name, *v1alpha1.RateLimitPolicy]
	TrafficPolicies        *flow.Input[object.Name, *v1alpha1.TrafficPolicy]
	XBackends              *flow.Input[object.Name, *gwxv1alpha1.XBackend]
	InferencePools         *flow.Input[object.Name, *poolsv1.InferencePool]
	Pods                   *flow.Input[object.Name, *corev1.Pod] // in a cluster only while there are InferencePools
	RouteFilters           *flow.Input[object.Name, *v1alpha1.RouteFilter]
	Parameters             *flow.Input[object.Name, *v1alpha1.GatewayParameters]
	Blueprints             *flow.Input[string, *v1alpha1.GatewayBlueprint]
	ClassValues            *flow.Input[object.Name, *v1alpha1.GatewayClassValues]
	GatewayValues          *flow.Input[object.Name, *v1alpha1.GatewayValues]

	// Kept are no objects: what a Gateway goes on with while its parameters can't be
	// used, or its class does not exist.
	Kept *flow.Input[object.Name, parameters.Kept]

	// KeptCertificates are the last pairs of Secrets that could be used. They hold keys.
	KeptCertificates *flow.Input[object.Name, KeptCertificate]

	// KeySets are what is known of key sets that are fetched.
	KeySets *flow.Input[keyset.Key, keyset.Answer]

	// FleetClasses says of a Gateway under which class its newest fleet was made. Package
	// pipeline sets it before the graph is declared; nil where there are no fleets.
	FleetClasses flow.Table[object.Name, string]

	// Unread says of kinds why the source reads none of their objects.
	Unread *flow.Input[string, string]

	// Broken says of objects that files have with a mistake, and of which nothing may be in
	// force, where that is: file:line. Package pipeline sets it before the graph is declared;
	// nil where there are no files.
	Broken flow.Table[object.Key, string]

	// SlicesByBackend orders the EndpointSlices under what they are the endpoints of.
	SlicesByBackend *flow.Index[object.Key, object.Name, *discoveryv1.EndpointSlice]

	// Others are objects of kinds that have no table of their own here: nothing of what
	// is served depends on them.
	Others *flow.Input[object.Key, source.Object]

	kinds *kind.Table
	rows  map[object.Kind]row
}

// row is how objects of a kind get into their table and out of it.
type row struct {
	set    func(tx *flow.Tx, k object.Key, o source.Object)
	delete func(tx *flow.Tx, k object.Key)
	names  func(c *flow.Ctx, yield func(object.Name))
	get    func(c *flow.Ctx, k object.Key) (source.Object, bool)
}

// NewInputs declares the input tables of these kinds.
func NewInputs(e *flow.Engine, kinds *kind.Table) *Inputs {
	in := &Inputs{kinds: kinds, rows: map[object.Kind]row{}}
	in.Classes = clusterScoped[*gwv1.GatewayClass](e, in)
	in.Gateways = namespaced[*gwv1.Gateway](e, in)
	in.ListenerSets = namespaced[*gwv1.ListenerSet](e, in)
	in.Routes = flow.NewInput[object.Key, RouteObject](e, "routes", flow.Equal(flow.Same[RouteObject]))
	in.Grants = namespaced[*gwv1.ReferenceGrant](e, in)
	in.Definitions = clusterScoped[*metav1.PartialObjectMetadata](e, in)
	in.Services = namespaced[*corev1.Service](e, in)
	in.Imports = namespaced[*mcsv1beta1.ServiceImport](e, in)
	in.Secrets = namespaced[*corev1.Secret](e, in)
	in.ConfigMaps = namespaced[*corev1.ConfigMap](e, in)
	in.Namespaces = clusterScoped[*corev1.Namespace](e, in)
	in.TrustBundles = clusterScoped[*certificatesv1.ClusterTrustBundle](e, in)
	in.BackendTLSPolicies = namespaced[*gwv1.BackendTLSPolicy](e, in)
	in.BackendTrafficPolicies = namespaced[*gwxv1alpha1.XBackendTrafficPolicy](e, in)
	in.AuthPolicies = namespaced[*v1alpha1.AuthPolicy](e, in)
	in.RateLimitPolicies = namespaced[*v1alpha1.RateLimitPolicy](e, in)
	in.TrafficPolicies = namespaced[*v1alpha1.TrafficPolicy](e, in)
	in.XBackends = namespaced[*gwxv1alpha1.XBackend](e, in)
	in.InferencePools = namespaced[*poolsv1.InferencePool](e, in)
	in.Pods = namespaced[*corev1.Pod](e, in)
	in.RouteFilters = namespaced[*v1alpha1.RouteFilter](e, in)
	in.Parameters = namespaced[*v1alpha1.GatewayParameters](e, in)
	in.Blueprints = clusterScoped[*v1alpha1.GatewayBlueprint](e, in)
	in.ClassValues = namespaced[*v1alpha1.GatewayClassValues](e, in)
	in.GatewayValues = namespaced[*v1alpha1.GatewayValues](e, in)
	in.Kept = flow.NewInput[object.Name, parameters.Kept](e, "kept-parameters", flow.Equal(parameters.SameKept))
	in.KeptCertificates = flow.NewInput[object.Name, KeptCertificate](e, "kept-secrets", flow.Equal(sameKeptCertificate))
	in.KeySets = flow.NewInput[keyset.Key, keyset.Answer](e, "key-sets", flow.Equal(flow.Same[keyset.Answer]))
	in.Unread = flow.NewInput[string, string](e, "unread-kinds", flow.Equal(flow.Same[string]))
	in.Slices = namespaced[*discoveryv1.EndpointSlice](e, in)
	in.Others = flow.NewInput[object.Key, source.Object](e, "other-objects", flow.Equal(flow.Same[source.Object]))
	for d := range kinds.Rows() {
		switch _, own := in.rows[d.Kind]; {
		case own:
		case d.Family == kind.Route:
			in.rows[d.Kind] = byKey(d.Kind, in.Routes, func(o source.Object) RouteObject { return o })
		default:
			in.rows[d.Kind] = byKey(d.Kind, in.Others, func(o source.Object) source.Object { return o })
		}
	}

	in.SlicesByBackend = flow.NewIndex(in.Slices,
		func(k object.Name, s *discoveryv1.EndpointSlice, yield func(object.Key)) {
			if service := s.Labels[discoveryv1.LabelServiceName]; service != "" {
				yield(object.Key{Kind: kind.Service, Name: name(k.Namespace, service)})
			}
			if service := s.Labels[mcsv1beta1.LabelServiceName]; service != "" {
				yield(object.Key{Kind: kind.ServiceImport, Name: name(k.Namespace, service)})
			}
		}, object.Name.Compare)
	return in
}

// namespaced declares the table of a kind whose objects are in namespaces.
func namespaced[T tabled](e *flow.Engine, in *Inputs) *flow.Input[object.Name, T] {
	return input[T](e, in, kind.Namespaced, func(n object.Name) object.Name { return n }, func(n object.Name) object.Name { return n })
}

// clusterScoped declares the table of a kind whose objects are in no namespace.
func clusterScoped[T tabled](e *flow.Engine, in *Inputs) *flow.Input[string, T] {
	return input[T](e, in, kind.ClusterScoped,
		func(n object.Name) string { return n.Name }, func(n string) object.Name { return name("", n) })
}

// tabled is an object with a table for its kind alone.
type tabled interface {
	source.Object
	comparable
}

// input declares the table of the kind whose objects are of a Go type.
func input[T tabled, K comparable](e *flow.Engine, in *Inputs, scope kind.Scope, key func(object.Name) K, nameOf func(K) object.Name) *flow.Input[K, T] {
	d := in.kinds.OfType(reflect.TypeFor[T]())
	if d == nil || d.Scope != scope {
		panic(fmt.Sprintf("the table of kinds has no %v of this scope", reflect.TypeFor[T]()))
	}
	t := flow.NewInput[K, T](e, d.Plural, flow.Equal(flow.Same[T]))
	in.rows[d.Kind] = row{
		set:    func(tx *flow.Tx, k object.Key, o source.Object) { t.Set(tx, key(k.Name), o.(T)) },
		delete: func(tx *flow.Tx, k object.Key) { t.Delete(tx, key(k.Name)) },
		get: func(c *flow.Ctx, k object.Key) (source.Object, bool) {
			o, ok := flow.Get(c, t, key(k.Name))
			return o, ok
		},
		names: func(c *flow.Ctx, yield func(object.Name)) {
			for k := range flow.All(c, t) {
				yield(nameOf(k))
			}
		},
	}
	return t
}

// byKey is the row of a kind whose objects are in one table with those of others.
func byKey[T any](of object.Kind, t *flow.Input[object.Key, T], as func(source.Object) T) row {
	return row{
		set:    func(tx *flow.Tx, k object.Key, o source.Object) { t.Set(tx, k, as(o)) },
		delete: func(tx *flow.Tx, k object.Key) { t.Delete(tx, k) },
		get: func(c *flow.Ctx, k object.Key) (source.Object, bool) {
			o, ok := flow.Get(c, t, k)
			object, _ := any(o).(source.Object)
			return object, ok
		},
		names: func(c *flow.Ctx, yield func(object.Name)) {
			for k := range flow.All(c, t) {
				if k.Kind == of {
					yield(k.Name)
				}
			}
		},
	}
}

func name(namespace, name string) object.Name { return object.Name{Namespace: namespace, Name: name} }

// KeyOf names an object by its Go type: not every source fills in its TypeMeta. It is
// not ok for kinds that are not in the table of kinds.
func (in *Inputs) KeyOf(o source.Object) (key object.Key, ok bool) {
	d := in.kinds.OfObject(o)
	if d == nil {
		return object.Key{}, false
	}
	return d.KeyOf(o), true
}

// Kinds are the kinds of objects that have a table.
func (in *Inputs) Kinds() *kind.Table { return in.kinds }

// Each calls yield with the name of each object of a kind.
func (in *Inputs) Each(c *flow.Ctx, of object.Kind, yield func(object.Name)) {
	in.rows[of].names(c, yield)
}

// Exists reports whether there is an object. There is none of a kind without a table.
func (in *Inputs) Exists(c *flow.Ctx, k object.Key) bool {
	row, ok := in.rows[k.Kind]
	if ok {
		_, ok = row.get(c, k)
	}
	return ok
}

// Objects calls yield with each object of each kind.
func (in *Inputs) Objects(c *flow.Ctx, yield func(source.Object)) {
	for of, row := range in.rows {
		row.names(c, func(name object.Name) {
			if o, ok := row.get(c, object.Key{Kind: of, Name: name}); ok {
				yield(o)
			}
		})
	}
}

// Apply puts a batch into the tables. It returns the objects of the Gateway API's
// kinds that are not in the table of kinds, which must not pass without a word; others are
// none of the pipeline's business. Objects are told by their Go type, since not
// every source fills in their TypeMeta.
func (in *Inputs) Apply(tx *flow.Tx, b source.Batch) (unsupported []source.Object) {
	for kind, why := range b.Unread {
		if why == "" {
			in.Unread.Delete(tx, kind)
		} else {
			in.Unread.Set(tx, kind, why)
		}
	}
	for _, k := range b.Deleted {
		if row, ok := in.rows[k.Kind]; ok {
			row.delete(tx, k)
		}
	}
	for _, o := range b.Set {
		if k, ok := in.KeyOf(o); ok {
			in.rows[k.Kind].set(tx, k, o)
		} else if strings.HasPrefix(o.GetObjectKind().GroupVersionKind().Group, "gateway.networking.") {
			unsupported = append(unsupported, o)
		}
	}
	return unsupported
}
