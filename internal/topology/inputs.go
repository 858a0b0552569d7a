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
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// Inputs are the tables of objects as the sources give them. Two objects are
// equal when they are one: a source hands over a new object for every change and
// the same one for none.
type Inputs struct {
	Classes      *flow.Input[string, *gwv1.GatewayClass]
	Gateways     *flow.Input[ir.Name, *gwv1.Gateway]
	ListenerSets *flow.Input[ir.Name, *gwv1.ListenerSet]
	Routes       *flow.Input[RouteKey, RouteObject] // of all kinds
	Services     *flow.Input[ir.Name, *corev1.Service]
	Slices       *flow.Input[ir.Name, *discoveryv1.EndpointSlice]
	Secrets      *flow.Input[ir.Name, *corev1.Secret]
	ConfigMaps   *flow.Input[ir.Name, *corev1.ConfigMap]
	Namespaces   *flow.Input[string, *corev1.Namespace]
	Grants       *flow.Input[ir.Name, *gwv1.ReferenceGrant]
	// Definitions are the CustomResourceDefinitions of the Gateway API; files have none.
	Definitions *flow.Input[string, *metav1.PartialObjectMetadata]

	TrustBundles       *flow.Input[string, *certificatesv1.ClusterTrustBundle]
	BackendTLSPolicies *flow.Input[ir.Name, *gwv1.BackendTLSPolicy]
	TrafficPolicies    *flow.Input[ir.Name, *gwxv1alpha1.XBackendTrafficPolicy]
	XBackends          *flow.Input[ir.Name, *gwxv1alpha1.XBackend]
	Parameters         *flow.Input[ir.Name, *v1alpha1.GatewayParameters]

	// Settled are no objects: what a Gateway goes on with while its parameters can't be
	// used.
	Settled *flow.Input[ir.Name, Settled]

	// Unread says of kinds why the source reads none of their objects.
	Unread *flow.Input[string, string]

	// SlicesByService orders the EndpointSlices under the Service that they belong to.
	SlicesByService *flow.Index[ir.Name, ir.Name, *discoveryv1.EndpointSlice]

	byType map[reflect.Type]*kind
	byName map[groupKind]*kind
}

type groupKind struct{ group, kind string }

// kind is one row of the table of kinds: how objects of a kind get into their
// table and out of it.
type kind struct {
	set    func(tx *flow.Tx, o source.Object)
	delete func(tx *flow.Tx, k source.Key)
}

// NewInputs declares the input tables.
func NewInputs(e *flow.Engine) *Inputs {
	in := &Inputs{byType: map[reflect.Type]*kind{}, byName: map[groupKind]*kind{}}
	gateway := gwv1.GroupVersion.Group
	in.Classes = input[*gwv1.GatewayClass](e, in, "gatewayclasses", gateway, "GatewayClass", clusterName)
	in.Gateways = input[*gwv1.Gateway](e, in, "gateways", gateway, gatewayKind, name)
	in.ListenerSets = input[*gwv1.ListenerSet](e, in, "listenersets", gateway, listenerSetKind, name)
	in.Routes = flow.NewInput[RouteKey, RouteObject](e, "routes", flow.Equal(flow.Same[RouteObject]))
	routeKind[*gwv1.HTTPRoute](in, HTTPRoute)
	routeKind[*gwv1.GRPCRoute](in, GRPCRoute)
	routeKind[*gwv1.TLSRoute](in, TLSRoute)
	routeKind[*gwv1.TCPRoute](in, TCPRoute)
	routeKind[*gwv1.UDPRoute](in, UDPRoute)
	in.Grants = input[*gwv1.ReferenceGrant](e, in, "referencegrants", gateway, "ReferenceGrant", name)
	in.Definitions = input[*metav1.PartialObjectMetadata](e, in, "definitions", "apiextensions.k8s.io", "CustomResourceDefinition", clusterName)
	in.Services = input[*corev1.Service](e, in, "services", corev1.GroupName, "Service", name)
	in.Secrets = input[*corev1.Secret](e, in, "secrets", corev1.GroupName, "Secret", name)
	in.ConfigMaps = input[*corev1.ConfigMap](e, in, "configmaps", corev1.GroupName, "ConfigMap", name)
	in.Namespaces = input[*corev1.Namespace](e, in, "namespaces", corev1.GroupName, "Namespace", clusterName)
	in.TrustBundles = input[*certificatesv1.ClusterTrustBundle](e, in, "clustertrustbundles", certificatesv1.GroupName, "ClusterTrustBundle", clusterName)
	in.BackendTLSPolicies = input[*gwv1.BackendTLSPolicy](e, in, "backendtlspolicies", gateway, "BackendTLSPolicy", name)
	in.TrafficPolicies = input[*gwxv1alpha1.XBackendTrafficPolicy](e, in, "xbackendtrafficpolicies", gwxv1alpha1.GroupVersion.Group, "XBackendTrafficPolicy", name)
	in.XBackends = input[*gwxv1alpha1.XBackend](e, in, "xbackends", gwxv1alpha1.GroupVersion.Group, xBackendKind, name)
	in.Parameters = input[*v1alpha1.GatewayParameters](e, in, "gatewayparameters", v1alpha1.GroupVersion.Group, parametersKind, name)
	in.Settled = flow.NewInput[ir.Name, Settled](e, "settled-parameters", flow.Equal(flow.Same[Settled]))
	in.Unread = flow.NewInput[string, string](e, "unread-kinds", flow.Equal(flow.Same[string]))
	in.Slices = input[*discoveryv1.EndpointSlice](e, in, "endpointslices", discoveryv1.GroupName, "EndpointSlice", name)

	in.SlicesByService = flow.NewIndex(in.Slices,
		func(k ir.Name, s *discoveryv1.EndpointSlice, yield func(ir.Name)) {
			if service := s.Labels[discoveryv1.LabelServiceName]; service != "" {
				yield(ir.Name{Namespace: k.Namespace, Name: service})
			}
		}, ir.Name.Compare)
	return in
}

// input declares the table of a kind and its row in the table of kinds.
func input[T interface {
	source.Object
	comparable
}, K comparable](e *flow.Engine, in *Inputs, table, group, kindName string, key func(namespace, name string) K) *flow.Input[K, T] {
	t := flow.NewInput[K, T](e, table, flow.Equal(flow.Same[T]))
	row := &kind{
		set: func(tx *flow.Tx, o source.Object) {
			t.Set(tx, key(o.GetNamespace(), o.GetName()), o.(T))
		},
		delete: func(tx *flow.Tx, k source.Key) { t.Delete(tx, key(k.Namespace, k.Name)) },
	}
	in.byType[reflect.TypeFor[T]()] = row
	in.byName[groupKind{group, kindName}] = row
	return t
}

// routeKind puts a kind of route into the table of kinds.
func routeKind[T RouteObject](in *Inputs, kindName string) {
	row := &kind{
		set: func(tx *flow.Tx, o source.Object) {
			in.Routes.Set(tx, RouteKey{kindName, name(o.GetNamespace(), o.GetName())}, o)
		},
		delete: func(tx *flow.Tx, k source.Key) {
			in.Routes.Delete(tx, RouteKey{kindName, name(k.Namespace, k.Name)})
		},
	}
	in.byType[reflect.TypeFor[T]()] = row
	in.byName[groupKind{gwv1.GroupVersion.Group, kindName}] = row
}

func name(namespace, name string) ir.Name { return ir.Name{Namespace: namespace, Name: name} }
func clusterName(_, name string) string   { return name }

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
		if row := in.byName[groupKind{k.Group, k.Kind}]; row != nil {
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
