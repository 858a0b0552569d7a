package schema

import (
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// The API groups whose objects Gatehouse reads from a source.
const (
	coreGroup         = ""
	certificatesGroup = "certificates.k8s.io"
	discoveryGroup    = "discovery.k8s.io"
	gatewayGroup      = "gateway.networking.k8s.io"
	experimentalGroup = "gateway.networking.x-k8s.io"
)

// A row is one row of the table of kinds: everything that differs between them.
type row struct {
	group, name string
	version     string // of the Go type that every served version becomes
	apiVersion  string // group and version, as objects have it
	cluster     bool   // cluster-scoped
	// older are versions that are read as well, whose fields are the same.
	older []string
	// experimental kinds without a CustomResourceDefinition are read only with the
	// experimental channel, whose kinds refer to them.
	experimental bool
	make         func() source.Object
	validName    validation.ValidateNameFunc
	// finish defaults and validates a core kind, whose rules are code in the API
	// server; nil for kinds with a CustomResourceDefinition.
	finish func(source.Object) field.ErrorList

	mu       sync.Mutex
	compiled map[channelVersion]*lazySchema
}

// custom reports whether the kind is defined by a CustomResourceDefinition.
func (k *row) custom() bool { return k.finish == nil }

// finisher adapts a typed rule set to the table.
func finisher[T source.Object](finish func(T) field.ErrorList) func(source.Object) field.ErrorList {
	return func(o source.Object) field.ErrorList { return finish(o.(T)) }
}

// customKind is a row for a kind with a CustomResourceDefinition.
func customKind(group, version, name string, create func() source.Object) *row {
	return &row{
		group: group, version: version, apiVersion: group + "/" + version, name: name,
		make: create, validName: validation.NameIsDNSSubdomain,
	}
}

// kinds is the table, a fresh one for each Validator, since rows hold compiled schemas.
func kinds() []*row {
	class := customKind(gatewayGroup, "v1", "GatewayClass", func() source.Object { return new(gatewayv1.GatewayClass) })
	class.cluster = true
	return []*row{
		class,
		customKind(gatewayGroup, "v1", "Gateway", func() source.Object { return new(gatewayv1.Gateway) }),
		customKind(gatewayGroup, "v1", "ListenerSet", func() source.Object { return new(gatewayv1.ListenerSet) }),
		customKind(gatewayGroup, "v1", "HTTPRoute", func() source.Object { return new(gatewayv1.HTTPRoute) }),
		customKind(gatewayGroup, "v1", "GRPCRoute", func() source.Object { return new(gatewayv1.GRPCRoute) }),
		customKind(gatewayGroup, "v1", "TLSRoute", func() source.Object { return new(gatewayv1.TLSRoute) }),
		customKind(gatewayGroup, "v1", "TCPRoute", func() source.Object { return new(gatewayv1.TCPRoute) }),
		customKind(gatewayGroup, "v1", "UDPRoute", func() source.Object { return new(gatewayv1.UDPRoute) }),
		customKind(gatewayGroup, "v1", "ReferenceGrant", func() source.Object { return new(gatewayv1.ReferenceGrant) }),
		customKind(gatewayGroup, "v1", "BackendTLSPolicy", func() source.Object { return new(gatewayv1.BackendTLSPolicy) }),
		customKind(experimentalGroup, "v1alpha1", "XBackend", func() source.Object { return new(gatewayxv1alpha1.XBackend) }),
		customKind(experimentalGroup, "v1alpha1", "XBackendTrafficPolicy", func() source.Object { return new(gatewayxv1alpha1.XBackendTrafficPolicy) }),
		customKind(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "GatewayParameters", func() source.Object { return new(v1alpha1.GatewayParameters) }),
		{
			group: coreGroup, version: "v1", apiVersion: "v1", name: "Service",
			make:      func() source.Object { return new(corev1.Service) },
			validName: validation.NameIsDNS1035Label, finish: finisher(finishService),
		},
		{
			group: coreGroup, version: "v1", apiVersion: "v1", name: "Secret",
			make:      func() source.Object { return new(corev1.Secret) },
			validName: validation.NameIsDNSSubdomain, finish: finisher(finishSecret),
		},
		{
			group: coreGroup, version: "v1", apiVersion: "v1", name: "ConfigMap",
			make:      func() source.Object { return new(corev1.ConfigMap) },
			validName: validation.NameIsDNSSubdomain, finish: finisher(finishConfigMap),
		},
		{
			group: coreGroup, version: "v1", apiVersion: "v1", name: "Namespace", cluster: true,
			make:      func() source.Object { return new(corev1.Namespace) },
			validName: validation.NameIsDNSLabel, finish: finisher(finishNamespace),
		},
		{
			group: discoveryGroup, version: "v1", apiVersion: discoveryGroup + "/v1", name: "EndpointSlice",
			make:      func() source.Object { return new(discoveryv1.EndpointSlice) },
			validName: validation.NameIsDNSSubdomain, finish: finisher(finishEndpointSlice),
		},
		{
			group: certificatesGroup, version: "v1", apiVersion: certificatesGroup + "/v1", name: "ClusterTrustBundle", cluster: true,
			older: []string{"v1beta1", "v1alpha1"}, experimental: true,
			make:      func() source.Object { return new(certificatesv1.ClusterTrustBundle) },
			validName: validTrustBundleName, finish: finisher(finishClusterTrustBundle),
		},
	}
}
