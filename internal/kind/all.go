package kind

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// All is the table of the kinds that Gatehouse reads, in the order in which a cluster is
// asked for them and people are told of them.
var All = NewTable(
	&Descriptor{
		Kind: Definition, Plural: "customresourcedefinitions", Scope: ClusterScoped, Reading: MetadataOnly, Fleets: true,
		Versions: []Version{metadata(apiextensionsv1.SchemeGroupVersion.WithKind(Definition.Name()))},
	},
	&Descriptor{
		Kind: Namespace, Plural: "namespaces", Scope: ClusterScoped, Fleets: true,
		Versions: []Version{Typed[corev1.Namespace, corev1.NamespaceList]("v1")},
	},
	&Descriptor{
		Kind: GatewayClass, Plural: "gatewayclasses", Words: []string{"gc", "class"}, Scope: ClusterScoped, Family: Front, Fleets: true, Custom: true,
		Versions: []Version{Typed[gwv1.GatewayClass, gwv1.GatewayClassList]("v1")},
		Status:   classStatus(),
	},
	&Descriptor{
		Kind: GatewayParameters, Plural: "gatewayparameters", Fleets: true, Custom: true,
		Versions: []Version{Typed[v1alpha1.GatewayParameters, v1alpha1.GatewayParametersList]("v1alpha1")},
	},
	&Descriptor{
		Kind: Gateway, Plural: "gateways", Words: []string{"gtw", "gw"}, Family: Front, Fleets: true, Custom: true,
		Versions: []Version{Typed[gwv1.Gateway, gwv1.GatewayList]("v1")},
		Status:   gatewayStatus(),
	},
	&Descriptor{
		Kind: ListenerSet, Plural: "listenersets", Words: []string{"lset"}, Family: Front, Custom: true,
		Versions: []Version{Typed[gwv1.ListenerSet, gwv1.ListenerSetList]("v1")},
		Status:   listenerSetStatus(),
	},
	&Descriptor{
		Kind: HTTPRoute, Plural: "httproutes", Family: Route, Custom: true,
		Versions: []Version{Typed[gwv1.HTTPRoute, gwv1.HTTPRouteList]("v1")},
		Status:   routeStatus(func(o *gwv1.HTTPRoute) *gwv1.RouteStatus { return &o.Status.RouteStatus }),
	},
	&Descriptor{
		Kind: GRPCRoute, Plural: "grpcroutes", Family: Route, Custom: true,
		Versions: []Version{Typed[gwv1.GRPCRoute, gwv1.GRPCRouteList]("v1")},
		Status:   routeStatus(func(o *gwv1.GRPCRoute) *gwv1.RouteStatus { return &o.Status.RouteStatus }),
	},
	&Descriptor{
		Kind: TLSRoute, Plural: "tlsroutes", Family: Route, Custom: true,
		Versions: []Version{Typed[gwv1.TLSRoute, gwv1.TLSRouteList]("v1")},
		Status:   routeStatus(func(o *gwv1.TLSRoute) *gwv1.RouteStatus { return &o.Status.RouteStatus }),
	},
	&Descriptor{
		Kind: TCPRoute, Plural: "tcproutes", Family: Route, Custom: true,
		Versions: []Version{Typed[gwv1.TCPRoute, gwv1.TCPRouteList]("v1")},
		Status:   routeStatus(func(o *gwv1.TCPRoute) *gwv1.RouteStatus { return &o.Status.RouteStatus }),
	},
	&Descriptor{
		Kind: UDPRoute, Plural: "udproutes", Family: Route, Custom: true,
		Versions: []Version{Typed[gwv1.UDPRoute, gwv1.UDPRouteList]("v1")},
		Status:   routeStatus(func(o *gwv1.UDPRoute) *gwv1.RouteStatus { return &o.Status.RouteStatus }),
	},
	&Descriptor{
		Kind: ReferenceGrant, Plural: "referencegrants", Custom: true,
		Versions: []Version{
			Typed[gwv1.ReferenceGrant, gwv1.ReferenceGrantList]("v1"),
			Converted[gwv1beta1.ReferenceGrant, gwv1beta1.ReferenceGrantList]("v1beta1", convertGrant),
		},
	},
	&Descriptor{
		Kind: BackendTLSPolicy, Plural: "backendtlspolicies", Words: []string{"btlspolicy", "btls"}, Family: Policy, Custom: true,
		Versions: []Version{Typed[gwv1.BackendTLSPolicy, gwv1.BackendTLSPolicyList]("v1")},
		Status:   policyStatus(func(o *gwv1.BackendTLSPolicy) *gwv1.PolicyStatus { return &o.Status }),
	},
	&Descriptor{
		Kind: AuthPolicy, Plural: "authpolicies", Words: []string{"ap"}, Family: Policy, Guards: true, Inherited: true, Custom: true,
		Versions: []Version{Typed[v1alpha1.AuthPolicy, v1alpha1.AuthPolicyList]("v1alpha1")},
		Status:   policyStatus(func(o *v1alpha1.AuthPolicy) *gwv1.PolicyStatus { return &o.Status }),
	},
	&Descriptor{
		Kind: RateLimitPolicy, Plural: "ratelimitpolicies", Words: []string{"rlp"}, Family: Policy, Inherited: true, Custom: true,
		Versions: []Version{Typed[v1alpha1.RateLimitPolicy, v1alpha1.RateLimitPolicyList]("v1alpha1")},
		Status:   policyStatus(func(o *v1alpha1.RateLimitPolicy) *gwv1.PolicyStatus { return &o.Status }),
	},
	&Descriptor{
		Kind: TrafficPolicy, Plural: "trafficpolicies", Words: []string{"tp"}, Family: Policy, Inherited: true, Custom: true,
		Versions: []Version{Typed[v1alpha1.TrafficPolicy, v1alpha1.TrafficPolicyList]("v1alpha1")},
		Status:   policyStatus(func(o *v1alpha1.TrafficPolicy) *gwv1.PolicyStatus { return &o.Status }),
	},
	&Descriptor{
		Kind: GatewayBlueprint, Plural: "gatewayblueprints", Words: []string{"blueprint"}, Scope: ClusterScoped, Custom: true,
		Versions: []Version{Typed[v1alpha1.GatewayBlueprint, v1alpha1.GatewayBlueprintList]("v1alpha1")},
		Status: Whole(func(o *v1alpha1.GatewayBlueprint) *v1alpha1.GatewayBlueprintStatus { return &o.Status },
			func(s *v1alpha1.GatewayBlueprintStatus, yield visitor) { yield("", &s.Conditions) }),
	},
	&Descriptor{
		Kind: GatewayClassValues, Plural: "gatewayclassvalues", Custom: true,
		Versions: []Version{Typed[v1alpha1.GatewayClassValues, v1alpha1.GatewayClassValuesList]("v1alpha1")},
		Status: Whole(func(o *v1alpha1.GatewayClassValues) *v1alpha1.ValuesStatus { return &o.Status },
			func(s *v1alpha1.ValuesStatus, yield visitor) { yield("", &s.Conditions) }),
	},
	&Descriptor{
		Kind: GatewayValues, Plural: "gatewayvalues", Custom: true,
		Versions: []Version{Typed[v1alpha1.GatewayValues, v1alpha1.GatewayValuesList]("v1alpha1")},
		Status: Whole(func(o *v1alpha1.GatewayValues) *v1alpha1.ValuesStatus { return &o.Status },
			func(s *v1alpha1.ValuesStatus, yield visitor) { yield("", &s.Conditions) }),
	},
	&Descriptor{
		Kind: RouteFilter, Plural: "routefilters", Custom: true,
		Versions: []Version{Typed[v1alpha1.RouteFilter, v1alpha1.RouteFilterList]("v1alpha1")},
		Status: Whole(func(o *v1alpha1.RouteFilter) *v1alpha1.RouteFilterStatus { return &o.Status },
			func(s *v1alpha1.RouteFilterStatus, yield visitor) { yield("", &s.Conditions) }),
	},
	&Descriptor{
		Kind: XBackend, Plural: "xbackends", Channel: ExperimentalChannel, Custom: true,
		Versions: []Version{Typed[gwxv1alpha1.XBackend, gwxv1alpha1.XBackendList]("v1alpha1")},
		Status:   xBackendStatus(),
	},
	&Descriptor{
		Kind: BackendTrafficPolicy, Plural: "xbackendtrafficpolicies", Family: Policy, Channel: ExperimentalChannel, Custom: true,
		Versions: []Version{Typed[gwxv1alpha1.XBackendTrafficPolicy, gwxv1alpha1.XBackendTrafficPolicyList]("v1alpha1")},
		Status:   policyStatus(func(o *gwxv1alpha1.XBackendTrafficPolicy) *gwv1.PolicyStatus { return &o.Status }),
	},
	&Descriptor{
		Kind: Service, Plural: "services", Words: []string{"svc"}, Fleets: true,
		Versions: []Version{Typed[corev1.Service, corev1.ServiceList]("v1")},
	},
	&Descriptor{
		Kind: ServiceImport, Plural: "serviceimports", Words: []string{"svcim", "svcimport"}, Custom: true,
		Versions: []Version{
			Typed[mcsv1beta1.ServiceImport, mcsv1beta1.ServiceImportList]("v1beta1"),
			Converted[mcsv1alpha1.ServiceImport, mcsv1alpha1.ServiceImportList]("v1alpha1", convertImport),
		},
	},
	&Descriptor{
		Kind: EndpointSlice, Plural: "endpointslices",
		Versions: []Version{Typed[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList]("v1")},
	},
	&Descriptor{
		Kind: InferencePool, Plural: "inferencepools", Words: []string{"infpool"}, Custom: true,
		Versions: []Version{Typed[poolsv1.InferencePool, poolsv1.InferencePoolList]("v1")},
		Status:   poolStatus(),
	},
	&Descriptor{
		Kind: Pod, Plural: "pods", Words: []string{"po"}, For: InferencePool,
		Versions: []Version{Typed[corev1.Pod, corev1.PodList]("v1")},
	},
	&Descriptor{
		Kind: ClusterTrustBundle, Plural: "clustertrustbundles", Scope: ClusterScoped, Channel: ExperimentalChannel,
		Versions: []Version{
			Typed[certificatesv1.ClusterTrustBundle, certificatesv1.ClusterTrustBundleList]("v1"),
			Converted[certificatesv1beta1.ClusterTrustBundle, certificatesv1beta1.ClusterTrustBundleList]("v1beta1", convertBundle),
			filesOnly("v1alpha1"),
		},
	},
	&Descriptor{
		Kind: Secret, Plural: "secrets", Reading: ByName,
		Versions: []Version{Typed[corev1.Secret, corev1.SecretList]("v1")},
	},
	&Descriptor{
		Kind: ConfigMap, Plural: "configmaps", Reading: ByName,
		Versions: []Version{Typed[corev1.ConfigMap, corev1.ConfigMapList]("v1")},
	},
)

// WithIngresses is the table of those who serve Ingresses too.
var WithIngresses = All.With(&Descriptor{
	Kind: Ingress, Plural: "ingresses", Words: []string{"ing"}, Fleets: true,
	Versions: []Version{Typed[networkingv1.Ingress, networkingv1.IngressList]("v1")},
})

func convertGrant(g *gwv1beta1.ReferenceGrant) Object {
	return &gwv1.ReferenceGrant{
		TypeMeta:   metav1.TypeMeta{APIVersion: gwv1.GroupVersion.String(), Kind: g.Kind},
		ObjectMeta: g.ObjectMeta, Spec: g.Spec,
	}
}

func convertImport(i *mcsv1alpha1.ServiceImport) Object {
	out := &mcsv1beta1.ServiceImport{
		TypeMeta:   metav1.TypeMeta{APIVersion: mcsv1beta1.GroupVersion.String(), Kind: i.Kind},
		ObjectMeta: i.ObjectMeta,
		Spec: mcsv1beta1.ServiceImportSpec{
			IPs: i.Spec.IPs, Type: mcsv1beta1.ServiceImportType(i.Spec.Type),
			SessionAffinity: i.Spec.SessionAffinity, SessionAffinityConfig: i.Spec.SessionAffinityConfig, IPFamilies: i.Spec.IPFamilies,
			InternalTrafficPolicy: i.Spec.InternalTrafficPolicy, TrafficDistribution: i.Spec.TrafficDistribution,
		},
	}
	for _, p := range i.Spec.Ports {
		out.Spec.Ports = append(out.Spec.Ports, mcsv1beta1.ServicePort(p))
	}
	return out
}

func convertBundle(b *certificatesv1beta1.ClusterTrustBundle) Object {
	return &certificatesv1.ClusterTrustBundle{
		TypeMeta:   metav1.TypeMeta{APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: b.Kind},
		ObjectMeta: b.ObjectMeta, Spec: certificatesv1.ClusterTrustBundleSpec(b.Spec),
	}
}
