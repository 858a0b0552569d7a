package kube

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// row is one of the table of kinds.
type row struct {
	group, name string
	resource    string    // as rules for access have it
	versions    []version // to be read, the best first
	cluster     bool      // cluster-scoped
	custom      bool      // defined by a CustomResourceDefinition
	// experimental kinds are read only with the experimental channel.
	experimental bool
	// content marks kinds whose objects are watched by name and read when wanted.
	content bool
}

// version is a version of a kind.
type version struct {
	name string
	make func() client.Object
	list func() client.ObjectList
	// convert makes the pipeline's type of an object; nil where it is that type.
	convert func(client.Object) client.Object
}

func (k *row) key(o client.Object) object.Key {
	return object.Key{Kind: object.KindOf(k.group, k.name), Name: object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// typeMeta is what objects of a version say of themselves.
func (k *row) typeMeta(version string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: schema.GroupVersion{Group: k.group, Version: version}.String(), Kind: k.name}
}

// crd is the name of the kind's CustomResourceDefinition.
func (k *row) crd() string { return k.resource + "." + k.group }

func (k *row) String() string {
	if k.group == "" {
		return k.resource
	}
	return k.crd()
}

// typed is the version of a kind with a Go type.
func typed[T any, L any, PT interface {
	*T
	client.Object
}, PL interface {
	*L
	client.ObjectList
}](name string) version {
	return version{
		name: name,
		make: func() client.Object { return PT(new(T)) },
		list: func() client.ObjectList { return PL(new(L)) },
	}
}

// metadata is the version of a kind of which only the metadata is read.
func metadata(gvk schema.GroupVersionKind) version {
	return version{
		name: gvk.Version,
		make: func() client.Object {
			o := &metav1.PartialObjectMetadata{}
			o.SetGroupVersionKind(gvk)
			return o
		},
		list: func() client.ObjectList {
			l := &metav1.PartialObjectMetadataList{}
			l.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			return l
		},
	}
}

// gateway is a row of the Gateway API.
func gateway(name, resource string, versions ...version) *row {
	return &row{group: gwv1.GroupVersion.Group, name: name, resource: resource, versions: versions, custom: true}
}

// kinds is the table.
func kinds() []*row {
	class := gateway("GatewayClass", "gatewayclasses", typed[gwv1.GatewayClass, gwv1.GatewayClassList]("v1"))
	class.cluster = true

	oldGrant := typed[gwv1beta1.ReferenceGrant, gwv1beta1.ReferenceGrantList]("v1beta1")
	oldGrant.convert = func(o client.Object) client.Object {
		g := o.(*gwv1beta1.ReferenceGrant)
		return &gwv1.ReferenceGrant{
			TypeMeta:   metav1.TypeMeta{APIVersion: gwv1.GroupVersion.String(), Kind: g.Kind},
			ObjectMeta: g.ObjectMeta, Spec: g.Spec,
		}
	}
	oldBundle := typed[certificatesv1beta1.ClusterTrustBundle, certificatesv1beta1.ClusterTrustBundleList]("v1beta1")
	oldBundle.convert = func(o client.Object) client.Object {
		b := o.(*certificatesv1beta1.ClusterTrustBundle)
		return &certificatesv1.ClusterTrustBundle{
			TypeMeta:   metav1.TypeMeta{APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: b.Kind},
			ObjectMeta: b.ObjectMeta, Spec: certificatesv1.ClusterTrustBundleSpec(b.Spec),
		}
	}

	return []*row{
		{
			group: apiextensionsv1.GroupName, name: "CustomResourceDefinition", resource: "customresourcedefinitions", cluster: true,
			versions: []version{metadata(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))},
		},
		{
			name: "Namespace", resource: "namespaces", cluster: true,
			versions: []version{typed[corev1.Namespace, corev1.NamespaceList]("v1")},
		},
		class,
		{
			group: v1alpha1.GroupVersion.Group, name: "GatewayParameters", resource: "gatewayparameters", custom: true,
			versions: []version{typed[v1alpha1.GatewayParameters, v1alpha1.GatewayParametersList]("v1alpha1")},
		},
		gateway("Gateway", "gateways", typed[gwv1.Gateway, gwv1.GatewayList]("v1")),
		gateway("ListenerSet", "listenersets", typed[gwv1.ListenerSet, gwv1.ListenerSetList]("v1")),
		gateway("HTTPRoute", "httproutes", typed[gwv1.HTTPRoute, gwv1.HTTPRouteList]("v1")),
		gateway("GRPCRoute", "grpcroutes", typed[gwv1.GRPCRoute, gwv1.GRPCRouteList]("v1")),
		gateway("TLSRoute", "tlsroutes", typed[gwv1.TLSRoute, gwv1.TLSRouteList]("v1")),
		gateway("TCPRoute", "tcproutes", typed[gwv1.TCPRoute, gwv1.TCPRouteList]("v1")),
		gateway("UDPRoute", "udproutes", typed[gwv1.UDPRoute, gwv1.UDPRouteList]("v1")),
		gateway("ReferenceGrant", "referencegrants", typed[gwv1.ReferenceGrant, gwv1.ReferenceGrantList]("v1"), oldGrant),
		gateway("BackendTLSPolicy", "backendtlspolicies", typed[gwv1.BackendTLSPolicy, gwv1.BackendTLSPolicyList]("v1")),
		{
			group: gwxv1alpha1.GroupVersion.Group, name: "XBackend", resource: "xbackends", custom: true, experimental: true,
			versions: []version{typed[gwxv1alpha1.XBackend, gwxv1alpha1.XBackendList]("v1alpha1")},
		},
		{
			group: gwxv1alpha1.GroupVersion.Group, name: "XBackendTrafficPolicy", resource: "xbackendtrafficpolicies", custom: true, experimental: true,
			versions: []version{typed[gwxv1alpha1.XBackendTrafficPolicy, gwxv1alpha1.XBackendTrafficPolicyList]("v1alpha1")},
		},
		{
			name: "Service", resource: "services",
			versions: []version{typed[corev1.Service, corev1.ServiceList]("v1")},
		},
		{
			group: discoveryv1.GroupName, name: "EndpointSlice", resource: "endpointslices",
			versions: []version{typed[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList]("v1")},
		},
		{
			group: certificatesv1.GroupName, name: "ClusterTrustBundle", resource: "clustertrustbundles", cluster: true, experimental: true,
			versions: []version{typed[certificatesv1.ClusterTrustBundle, certificatesv1.ClusterTrustBundleList]("v1"), oldBundle},
		},
		{
			name: secretKind, resource: "secrets", content: true,
			versions: []version{metadata(corev1.SchemeGroupVersion.WithKind(secretKind))},
		},
		{
			name: configMapKind, resource: "configmaps", content: true,
			versions: []version{metadata(corev1.SchemeGroupVersion.WithKind(configMapKind))},
		},
	}
}

// The kinds whose contents are read when they are wanted.
const (
	secretKind    = "Secret"
	configMapKind = "ConfigMap"
)

// AddToScheme makes a scheme know all kinds that are read.
func AddToScheme(s *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, discoveryv1.AddToScheme,
		certificatesv1.AddToScheme, certificatesv1beta1.AddToScheme,
		gwv1.Install, gwv1beta1.Install, gwxv1alpha1.Install, v1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}
