package topology

import (
	"reflect"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
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
	Slices       *flow.Input[object.Name, *discoveryv1.EndpointSlice]
	Secrets      *flow.Input[object.Name, *corev1.Secret]
	ConfigMaps   *flow.Input[object.Name, *corev1.ConfigMap]
	Namespaces   *flow.Input[string, *corev1.Namespace]
	Grants       *flow.Input[object.Name, *gwv1.ReferenceGrant]
	// Definitions are the CustomResourceDefinitions of the Gateway API; files have none.
	Definitions *flow.Input[string, *metav1.PartialObjectMetadata]

	TrustBundles       *flow.Input[string, *certificatesv1.ClusterTrustBundle]
	BackendTLSPolicies *flow.Input[object.Name, *gwv1.BackendTLSPolicy]
	TrafficPolicies    *flow.Input[object.Name, *gwxv1alpha1.XBackendTrafficPolicy]
	XBackends          *flow.Input[object.Name, *gwxv1alpha1.XBackend]
	Parameters         *flow.Input[object.Name, *v1alpha1.GatewayParameters]

	// Kept are no objects: what a Gateway goes on with while its parameters can't be
	// used.
	Kept *flow.Input[object.Name, parameters.Kept]

	// Unread says of kinds why the source reads none of their objects.
	Unread *flow.Input[string, string]

	// SlicesByBackend orders the EndpointSlices under what they are the endpoints of.
	SlicesByBackend *flow.Index[object.Key, object.Name, *discoveryv1.EndpointSlice]

	byType map[reflect.Type]*row
	byKind map[object.Kind]*row
}

// row is one of the table of kinds: how objects of a kind get into their
// table and out of it.
type row struct {
	kind   object.Kind
	set    func(tx *flow.Tx, o source.Object)
	delete func(tx *flow.Tx, k object.Key)
}

// NewInputs declares the input tables.
func NewInputs(e *flow.Engine) *Inputs {
	in := &Inputs{byType: map[reflect.Type]*row{}, byKind: map[object.Kind]*row{}}
	in.Classes = input[*gwv1.GatewayClass](e, in, "gatewayclasses", kind.GatewayClass, clusterScoped)
	in.Gateways = input[*gwv1.Gateway](e, in, "gateways", kind.Gateway, namespaced)
	in.ListenerSets = input[*gwv1.ListenerSet](e, in, "listenersets", kind.ListenerSet, namespaced)
	in.Routes = flow.NewInput[object.Key, RouteObject](e, "routes", flow.Equal(flow.Same[RouteObject]))
	routeKind[*gwv1.HTTPRoute](in, kind.HTTPRoute)
	routeKind[*gwv1.GRPCRoute](in, kind.GRPCRoute)
	routeKind[*gwv1.TLSRoute](in, kind.TLSRoute)
	routeKind[*gwv1.TCPRoute](in, kind.TCPRoute)
	routeKind[*gwv1.UDPRoute](in, kind.UDPRoute)
	in.Grants = input[*gwv1.ReferenceGrant](e, in, "referencegrants", kind.ReferenceGrant, namespaced)
	in.Definitions = input[*metav1.PartialObjectMetadata](e, in, "definitions", kind.Definition, clusterScoped)
	in.Services = input[*corev1.Service](e, in, "services", kind.Service, namespaced)
	in.Secrets = input[*corev1.Secret](e, in, "secrets", kind.Secret, namespaced)
	in.ConfigMaps = input[*corev1.ConfigMap](e, in, "configmaps", kind.ConfigMap, namespaced)
	in.Namespaces = input[*corev1.Namespace](e, in, "namespaces", kind.Namespace, clusterScoped)
	in.TrustBundles = input[*certificatesv1.ClusterTrustBundle](e, in, "clustertrustbundles", kind.ClusterTrustBundle, clusterScoped)
	in.BackendTLSPolicies = input[*gwv1.BackendTLSPolicy](e, in, "backendtlspolicies", kind.BackendTLSPolicy, namespaced)
	in.TrafficPolicies = input[*gwxv1alpha1.XBackendTrafficPolicy](e, in, "xbackendtrafficpolicies", kind.BackendTrafficPolicy, namespaced)
	in.XBackends = input[*gwxv1alpha1.XBackend](e, in, "xbackends", kind.XBackend, namespaced)
	in.Parameters = input[*v1alpha1.GatewayParameters](e, in, "gatewayparameters", kind.GatewayParameters, namespaced)
	in.Kept = flow.NewInput[object.Name, parameters.Kept](e, "kept-parameters", flow.Equal(flow.Same[parameters.Kept]))
	in.Unread = flow.NewInput[string, string](e, "unread-kinds", flow.Equal(flow.Same[string]))
	in.Slices = input[*discoveryv1.EndpointSlice](e, in, "endpointslices", kind.EndpointSlice, namespaced)

	in.SlicesByBackend = flow.NewIndex(in.Slices,
		func(k object.Name, s *discoveryv1.EndpointSlice, yield func(object.Key)) {
			if service := s.Labels[discoveryv1.LabelServiceName]; service != "" {
				yield(object.Key{Kind: kind.Service, Name: name(k.Namespace, service)})
			}
		}, object.Name.Compare)
	return in
}

// input declares the table of a kind and its row in the table of kinds.
func input[T interface {
	source.Object
	comparable
}, K comparable](e *flow.Engine, in *Inputs, table string, of object.Kind, key func(object.Name) K) *flow.Input[K, T] {
	t := flow.NewInput[K, T](e, table, flow.Equal(flow.Same[T]))
	row := &row{
		kind: of,
		set: func(tx *flow.Tx, o source.Object) {
			t.Set(tx, key(nameOf(o)), o.(T))
		},
		delete: func(tx *flow.Tx, k object.Key) { t.Delete(tx, key(k.Name)) },
	}
	in.byType[reflect.TypeFor[T]()] = row
	in.byKind[of] = row
	return t
}

// routeKind puts a kind of route into the table of kinds.
func routeKind[T RouteObject](in *Inputs, of object.Kind) {
	row := &row{
		kind: of,
		set: func(tx *flow.Tx, o source.Object) {
			in.Routes.Set(tx, object.Key{Kind: of, Name: nameOf(o)}, o)
		},
		delete: func(tx *flow.Tx, k object.Key) {
			in.Routes.Delete(tx, k)
		},
	}
	in.byType[reflect.TypeFor[T]()] = row
	in.byKind[of] = row
}

func name(namespace, name string) object.Name { return object.Name{Namespace: namespace, Name: name} }

func nameOf(o source.Object) object.Name { return name(o.GetNamespace(), o.GetName()) }

// The keys of tables: kinds that are cluster-scoped have no namespace in theirs.
func namespaced(n object.Name) object.Name { return n }
func clusterScoped(n object.Name) string   { return n.Name }

// KeyOf names an object by its Go type: not every source fills in its TypeMeta. It is
// not ok for kinds without a table.
func (in *Inputs) KeyOf(o source.Object) (key object.Key, ok bool) {
	row := in.byType[reflect.TypeOf(o)]
	if row == nil {
		return object.Key{}, false
	}
	return object.Key{Kind: row.kind, Name: nameOf(o)}, true
}

// Apply puts a batch into the tables. It returns the objects of the Gateway API's
// kinds that have no table yet, which must not pass without a word; others are
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
		if row := in.byKind[k.Kind]; row != nil {
			row.delete(tx, k)
		}
	}
	for _, o := range b.Set {
		if row := in.byType[reflect.TypeOf(o)]; row != nil {
			row.set(tx, o)
		} else if strings.HasPrefix(o.GetObjectKind().GroupVersionKind().Group, "gateway.networking.") {
			unsupported = append(unsupported, o)
		}
	}
	return unsupported
}
