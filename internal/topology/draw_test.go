package topology

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
	"sigs.k8s.io/gateway-api/pkg/consts"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// The generators draw from few names, so that objects miss, find and contradict
// one another.
var (
	someNamespace  = rapid.SampledFrom([]string{"one", "two"})
	someName       = rapid.SampledFrom([]string{"a", "b", "c"})
	somePort       = rapid.SampledFrom([]int32{80, 443})
	someHostname   = rapid.SampledFrom([]gwv1.Hostname{"a.test", "b.test", "*.test", "A.test"})
	someProtocol   = rapid.SampledFrom([]gwv1.ProtocolType{"HTTP", "HTTP", "HTTP", "HTTPS", "HTTPS", "TLS", "TCP", "UDP"})
	someFrom       = rapid.SampledFrom([]gwv1.FromNamespaces{"Same", "All", "Selector"})
	someScope      = rapid.SampledFrom([]gwv1.GatewayDefaultScope{"", "", gwv1.GatewayDefaultScopeAll})
	someUID        = rapid.SampledFrom([]types.UID{"", "1"})
	someSettings   = rapid.Custom(func(t *rapid.T) v1alpha1.Settings { return *drawSettings(t) })
	somePair       = rapid.SampledFrom([]string{"ecdsa", "other"})
	someAuthority  = rapid.SampledFrom([]string{"ecdsa", "other", "nonesuch"})
	someObjectName = rapid.Map(someName, func(s string) gwv1.ObjectName { return gwv1.ObjectName(s) })
	someAddress    = rapid.SampledFrom([]gwv1.GatewaySpecAddress{
		{Value: "127.0.0.1"}, {Value: "127.0.0.2"}, {Value: "0.0.0.0"}, {Value: "10.0.0.1"}, {},
		{Type: new(gwv1.HostnameAddressType), Value: "x.test"},
	})
)

// drawn is a kind of input with the generator of its objects.
type drawn struct {
	goType reflect.Type
	draw   *rapid.Generator[source.Object]
	share  int // of all objects
}

func draws[T source.Object](share int, draw func(*rapid.T) T) drawn {
	return drawn{
		goType: reflect.TypeFor[T](), share: share,
		draw: rapid.Custom(func(t *rapid.T) source.Object { return draw(t) }),
	}
}

// kindsDrawn are all kinds of objects that are read: TestEveryInputIsDrawn.
var kindsDrawn = []drawn{
	draws(2, drawClass),
	draws(4, drawGateway),
	draws(4, drawSet),
	draws(4, drawHTTPRoute),
	draws(2, drawGRPCRoute),
	draws(2, func(t *rapid.T) *gwv1.TLSRoute {
		from := drawHTTPRoute(t)
		r := &gwv1.TLSRoute{ObjectMeta: from.ObjectMeta}
		r.Spec.CommonRouteSpec, r.Spec.Hostnames = from.Spec.CommonRouteSpec, from.Spec.Hostnames
		for _, refs := range backendRefs(from) {
			r.Spec.Rules = append(r.Spec.Rules, gwv1.TLSRouteRule{BackendRefs: refs})
		}
		return r
	}),
	draws(1, func(t *rapid.T) *gwv1.TCPRoute {
		from := drawHTTPRoute(t)
		r := &gwv1.TCPRoute{ObjectMeta: from.ObjectMeta}
		r.Spec.CommonRouteSpec = from.Spec.CommonRouteSpec
		for _, refs := range backendRefs(from) {
			r.Spec.Rules = append(r.Spec.Rules, gwv1.TCPRouteRule{BackendRefs: refs})
		}
		return r
	}),
	draws(1, func(t *rapid.T) *gwv1.UDPRoute {
		from := drawHTTPRoute(t)
		r := &gwv1.UDPRoute{ObjectMeta: from.ObjectMeta}
		r.Spec.CommonRouteSpec = from.Spec.CommonRouteSpec
		for _, refs := range backendRefs(from) {
			r.Spec.Rules = append(r.Spec.Rules, gwv1.UDPRouteRule{BackendRefs: refs})
		}
		return r
	}),
	draws(2, drawGrant),
	draws(1, func(t *rapid.T) *metav1.PartialObjectMetadata {
		name := rapid.SampledFrom([]string{"gateways.gateway.networking.k8s.io", "xbackends.gateway.networking.x-k8s.io"})
		// One that refuses all classes is rare, since little is left to compare then.
		version := rapid.SampledFrom([]string{consts.BundleVersion, consts.BundleVersion, consts.BundleVersion, "v1.0.0", "v9.0.0"})
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name:        name.Draw(t, "definition"),
			Annotations: map[string]string{consts.BundleVersionAnnotation: version.Draw(t, "version")},
		}}
	}),
	draws(3, drawService),
	draws(2, func(t *rapid.T) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: drawMeta(t), Data: map[string][]byte{
			"tls.crt": pairs[somePair.Draw(t, "crt")].crt,
			"tls.key": pairs[somePair.Draw(t, "key")].key,
			"ca.crt":  pairs[someAuthority.Draw(t, "ca")].crt,
		}}
	}),
	draws(2, func(t *rapid.T) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: drawMeta(t), Data: map[string]string{
			"ca.crt": string(pairs[someAuthority.Draw(t, "ca")].crt),
		}}
	}),
	draws(1, func(t *rapid.T) *certificatesv1.ClusterTrustBundle {
		return &certificatesv1.ClusterTrustBundle{
			ObjectMeta: metav1.ObjectMeta{Name: someName.Draw(t, "name")},
			Spec:       certificatesv1.ClusterTrustBundleSpec{TrustBundle: string(pairs[someAuthority.Draw(t, "ca")].crt)},
		}
	}),
	draws(2, func(t *rapid.T) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:   someNamespace.Draw(t, "namespace"),
			Labels: map[string]string{"team": someName.Draw(t, "team")},
		}}
	}),
	draws(2, drawTLSPolicy),
	draws(2, drawBackendTrafficPolicy),
	draws(2, drawXBackend),
	draws(2, func(t *rapid.T) *mcsv1beta1.ServiceImport {
		return &mcsv1beta1.ServiceImport{ObjectMeta: drawMeta(t), Spec: mcsv1beta1.ServiceImportSpec{
			Ports: []mcsv1beta1.ServicePort{{Port: somePort.Draw(t, "port"), Name: rapid.SampledFrom([]string{"", "http"}).Draw(t, "port name")}},
		}}
	}),
	draws(2, drawInferencePool),
	draws(3, drawPod),
	draws(2, drawAuthPolicy),
	draws(2, drawRateLimitPolicy),
	draws(2, drawRouteFilter),
	draws(2, drawTrafficPolicy),
	draws(2, func(t *rapid.T) *v1alpha1.GatewayParameters {
		return &v1alpha1.GatewayParameters{ObjectMeta: drawMeta(t), Spec: v1alpha1.GatewayParametersSpec{
			Settings: *drawSettings(t), Overrides: maybe(t, someSettings, "overrides"),
			Allow:        maybe(t, rapid.Custom(drawAllow), "allow"),
			BlueprintRef: maybe(t, rapid.Map(someName, func(s string) v1alpha1.BlueprintRef { return v1alpha1.BlueprintRef{Name: s} }), "blueprint"),
		}}
	}),
	draws(1, func(t *rapid.T) *v1alpha1.GatewayBlueprint {
		o := &v1alpha1.GatewayBlueprint{ObjectMeta: drawMeta(t)}
		o.Namespace = ""
		return o
	}),
	draws(1, func(t *rapid.T) *v1alpha1.GatewayClassValues {
		return &v1alpha1.GatewayClassValues{ObjectMeta: drawMeta(t)}
	}),
	draws(1, func(t *rapid.T) *v1alpha1.GatewayValues { return &v1alpha1.GatewayValues{ObjectMeta: drawMeta(t)} }),
	draws(1, func(t *rapid.T) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: drawMeta(t), AddressType: discoveryv1.AddressTypeIPv4}
		label := rapid.SampledFrom([]string{discoveryv1.LabelServiceName, mcsv1beta1.LabelServiceName}).Draw(t, "label")
		s.Labels = map[string]string{label: someName.Draw(t, "service")}
		return s
	}),
}

var someObject = func() *rapid.Generator[source.Object] {
	var all []*rapid.Generator[source.Object]
	for _, k := range kindsDrawn {
		all = append(all, slices.Repeat([]*rapid.Generator[source.Object]{k.draw}, k.share)...)
	}
	return rapid.OneOf(all...)
}()

func maybe[T any](t *rapid.T, g *rapid.Generator[T], label string) *T {
	if rapid.IntRange(0, 1).Draw(t, label+"?") == 0 {
		return nil
	}
	return new(g.Draw(t, label))
}

func drawMeta(t *rapid.T) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: someNamespace.Draw(t, "namespace"), Name: someName.Draw(t, "name"), UID: someUID.Draw(t, "uid"),
		CreationTimestamp: metav1.NewTime(time.Unix(rapid.Int64Range(0, 2).Draw(t, "created"), 0).UTC()),
		Labels:            someLabels.Draw(t, "labels"),
	}
}

var someLabels = rapid.SampledFrom([]map[string]string{nil, {"team": "a"}, {"team": "a", "guarded": "yes"}, {"team": "b", "guarded": "yes"}, {"guarded": ""}})

func drawNamespaceRef(t *rapid.T) *gwv1.Namespace {
	return maybe(t, rapid.Map(someNamespace, func(s string) gwv1.Namespace { return gwv1.Namespace(s) }), "namespace")
}

func drawClass(t *rapid.T) *gwv1.GatewayClass {
	controller := rapid.SampledFrom([]gwv1.GatewayController{ourController, ourController, "example.com/other"})
	return &gwv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: rapid.SampledFrom([]string{"gatehouse", "other"}).Draw(t, "class")},
		Spec: gwv1.GatewayClassSpec{
			ControllerName: controller.Draw(t, "controller"),
			ParametersRef: maybe(t, rapid.Custom(func(t *rapid.T) gwv1.ParametersReference {
				return gwv1.ParametersReference{
					Group: "gatehouse.dev", Kind: "GatewayParameters",
					Name: someName.Draw(t, "parameters"), Namespace: drawNamespaceRef(t),
				}
			}), "parameters"),
		},
	}
}

func drawGateway(t *rapid.T) *gwv1.Gateway {
	gw := &gwv1.Gateway{ObjectMeta: drawMeta(t)}
	gw.Spec.GatewayClassName = rapid.SampledFrom([]gwv1.ObjectName{"gatehouse", "gatehouse", "other"}).Draw(t, "class")
	gw.Spec.DefaultScope = someScope.Draw(t, "default")
	gw.Spec.Addresses = rapid.SliceOfN(someAddress, 0, 2).Draw(t, "addresses")
	gw.Spec.Listeners = drawListeners(t)
	if from := maybe(t, someFrom, "sets from"); from != nil {
		gw.Spec.AllowedListeners = &gwv1.AllowedListeners{Namespaces: &gwv1.ListenerNamespaces{
			From: from, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": someName.Draw(t, "team")}},
		}}
	}
	if name := maybe(t, someName, "parameters"); name != nil {
		gw.Spec.Infrastructure = &gwv1.GatewayInfrastructure{
			ParametersRef: &gwv1.LocalParametersReference{Group: "gatehouse.dev", Kind: "GatewayParameters", Name: *name},
		}
	}
	gw.Spec.TLS = maybe(t, rapid.Custom(drawGatewayTLS), "tls")
	return gw
}

func drawGatewayTLS(t *rapid.T) gwv1.GatewayTLSConfig {
	validation := rapid.Custom(func(t *rapid.T) gwv1.FrontendTLSValidation {
		return gwv1.FrontendTLSValidation{
			CACertificateRefs: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) gwv1.ObjectReference {
				group, kind := drawAuthorityKind(t)
				return gwv1.ObjectReference{Group: group, Kind: kind, Name: someObjectName.Draw(t, "authority"), Namespace: drawNamespaceRef(t)}
			}), 1, 2).Draw(t, "authorities"),
			Mode: rapid.SampledFrom([]gwv1.FrontendValidationModeType{gwv1.AllowValidOnly, gwv1.AllowInsecureFallback}).Draw(t, "mode"),
		}
	})
	tls := gwv1.GatewayTLSConfig{Frontend: &gwv1.FrontendTLSConfig{Default: gwv1.TLSConfig{Validation: maybe(t, validation, "clients")}}}
	if per := maybe(t, validation, "clients of a port"); per != nil {
		tls.Frontend.PerPort = []gwv1.TLSPortConfig{{Port: 443, TLS: gwv1.TLSConfig{Validation: per}}}
	}
	if name := maybe(t, someObjectName, "client certificate"); name != nil {
		tls.Backend = &gwv1.GatewayBackendTLS{ClientCertificateRef: &gwv1.SecretObjectReference{Name: *name, Namespace: drawNamespaceRef(t)}}
	}
	return tls
}

func drawSet(t *rapid.T) *gwv1.ListenerSet {
	s := &gwv1.ListenerSet{ObjectMeta: drawMeta(t)}
	s.Spec.ParentRef = gwv1.ParentGatewayReference{Name: someObjectName.Draw(t, "gateway"), Namespace: drawNamespaceRef(t)}
	for _, l := range drawListeners(t) {
		s.Spec.Listeners = append(s.Spec.Listeners, gwv1.ListenerEntry(l))
	}
	return s
}

func drawListeners(t *rapid.T) (out []gwv1.Listener) {
	for i := range rapid.IntRange(1, 4).Draw(t, "listeners") {
		l := gwv1.Listener{
			Name: gwv1.SectionName(fmt.Sprint("l", i)), Port: somePort.Draw(t, "port"),
			Protocol: someProtocol.Draw(t, "protocol"), Hostname: maybe(t, someHostname, "hostname"),
			AllowedRoutes: &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{
				From:     maybe(t, someFrom, "from"),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": someName.Draw(t, "team")}},
			}},
		}
		if l.Protocol == gwv1.HTTPSProtocolType || l.Protocol == gwv1.TLSProtocolType {
			l.TLS = &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{
				Name: someObjectName.Draw(t, "secret"), Namespace: drawNamespaceRef(t),
			}}}
		}
		if l.Protocol == gwv1.TLSProtocolType {
			l.TLS.Mode = maybe(t, rapid.Just(gwv1.TLSModePassthrough), "passthrough")
		}
		out = append(out, l)
	}
	return out
}

func drawGrant(t *rapid.T) *gwv1.ReferenceGrant {
	from := rapid.SampledFrom([]gwv1.Kind{"Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"})
	return &gwv1.ReferenceGrant{ObjectMeta: drawMeta(t), Spec: gwv1.ReferenceGrantSpec{
		From: []gwv1.ReferenceGrantFrom{{
			Group: gwv1.GroupName, Kind: from.Draw(t, "from"),
			Namespace: gwv1.Namespace(someNamespace.Draw(t, "from namespace")),
		}},
		To: []gwv1.ReferenceGrantTo{{
			Kind: rapid.SampledFrom([]gwv1.Kind{"Secret", "Service", "ConfigMap"}).Draw(t, "to"),
			Name: maybe(t, someObjectName, "to name"),
		}},
	}}
}

func drawService(t *rapid.T) *corev1.Service {
	s := &corev1.Service{ObjectMeta: drawMeta(t)}
	if rapid.IntRange(0, 3).Draw(t, "type") == 0 {
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "x.test"
	}
	s.Spec.Ports = []corev1.ServicePort{{
		Port: somePort.Draw(t, "port"), TargetPort: intstr.FromInt32(1),
		Name:        rapid.SampledFrom([]string{"", "http"}).Draw(t, "port name"),
		Protocol:    rapid.SampledFrom([]corev1.Protocol{"", "", "UDP"}).Draw(t, "protocol"),
		AppProtocol: maybe(t, rapid.SampledFrom([]string{"http", "https"}), "app protocol"),
	}}
	return s
}

func drawSettings(t *rapid.T) *v1alpha1.Settings {
	return &v1alpha1.Settings{
		Client: &v1alpha1.Client{HTTP3: maybe(t, rapid.Bool(), "http3"), ProxyProtocol: maybe(t, rapid.Bool(), "PROXY protocol")},
		Deployment: maybe(t, rapid.Custom(func(t *rapid.T) v1alpha1.Deployment {
			return v1alpha1.Deployment{Replicas: maybe(t, rapid.Int32Range(0, 1), "replicas")}
		}), "deployment"),
		DaemonSet: maybe(t, rapid.Just(v1alpha1.DaemonSet{}), "daemonSet"),
		Tracing:   maybe(t, rapid.Just(v1alpha1.Tracing{}), "tracing"),
	}
}

// drawAllow draws rules for hostnames.
func drawAllow(t *rapid.T) v1alpha1.Allow {
	return v1alpha1.Allow{Hostnames: drawHostnameRules(t)}
}

func drawHostnameRules(t *rapid.T) (out []v1alpha1.AllowedHostnames) {
	for range rapid.IntRange(0, 2).Draw(t, "rules for hostnames") {
		rule := v1alpha1.AllowedHostnames{Hostnames: []string{rapid.SampledFrom([]string{"*", "*.test", "a.test"}).Draw(t, "allowed")}}
		if name := maybe(t, someNamespace, "allowed namespace"); name != nil {
			rule.Namespaces.Names = []string{*name}
		} else {
			rule.Namespaces.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": someName.Draw(t, "team")}}
		}
		out = append(out, rule)
	}
	return out
}

func drawHTTPRoute(t *rapid.T) *gwv1.HTTPRoute {
	r := &gwv1.HTTPRoute{ObjectMeta: drawMeta(t)}
	for range rapid.IntRange(0, 2).Draw(t, "parents") {
		r.Spec.ParentRefs = append(r.Spec.ParentRefs, gwv1.ParentReference{
			Kind: maybe(t, rapid.SampledFrom([]gwv1.Kind{"Gateway", "ListenerSet"}), "parent kind"),
			Name: someObjectName.Draw(t, "parent"), Namespace: drawNamespaceRef(t),
			SectionName: maybe(t, rapid.SampledFrom([]gwv1.SectionName{"l0", "l1", "l9"}), "section"),
			Port:        maybe(t, somePort, "port"),
		})
	}
	r.Spec.UseDefaultGateways = someScope.Draw(t, "default Gateways")
	r.Spec.Hostnames = rapid.SliceOfN(someHostname, 0, 2).Draw(t, "hostnames")
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		rule := gwv1.HTTPRouteRule{BackendRefs: []gwv1.HTTPBackendRef{{BackendRef: gwv1.BackendRef{BackendObjectReference: drawBackendRef(t)}}}}
		if ref := maybe(t, rapid.Custom(drawBackendRef), "mirror"); ref != nil {
			rule.Filters = append(rule.Filters, gwv1.HTTPRouteFilter{RequestMirror: &gwv1.HTTPRequestMirrorFilter{BackendRef: *ref}})
		}
		if name := maybe(t, someObjectName, "extension"); name != nil {
			rule.Filters = append(rule.Filters, gwv1.HTTPRouteFilter{ExtensionRef: &gwv1.LocalObjectReference{
				Group: "gatehouse.dev", Kind: rapid.SampledFrom([]gwv1.Kind{"RouteFilter", "Other"}).Draw(t, "kind"), Name: *name,
			}})
		}
		if ref := maybe(t, rapid.Custom(drawBackendRef), "authorization"); ref != nil {
			rule.Filters = append(rule.Filters, gwv1.HTTPRouteFilter{ExternalAuth: &gwv1.HTTPExternalAuthFilter{BackendRef: *ref}})
		}
		r.Spec.Rules = append(r.Spec.Rules, rule)
	}
	return r
}

// drawRouteFilter makes one that may refer to a ConfigMap.
func drawRouteFilter(t *rapid.T) *v1alpha1.RouteFilter {
	f := &v1alpha1.RouteFilter{ObjectMeta: drawMeta(t)}
	f.Spec.DirectResponse = maybe(t, rapid.Custom(func(t *rapid.T) v1alpha1.DirectResponse {
		return v1alpha1.DirectResponse{Status: 503, ConfigMapRef: maybe(t, rapid.Custom(func(t *rapid.T) v1alpha1.KeyRef {
			return v1alpha1.KeyRef{Name: someName.Draw(t, "body"), Key: rapid.SampledFrom([]string{"", "ca.crt"}).Draw(t, "entry")}
		}), "reference")}
	}), "answer")
	return f
}

func drawBackendRef(t *rapid.T) gwv1.BackendObjectReference {
	ref := gwv1.BackendObjectReference{
		Name: someObjectName.Draw(t, "backend"), Namespace: drawNamespaceRef(t), Port: maybe(t, somePort, "port"),
	}
	switch kind := rapid.SampledFrom([]gwv1.Kind{"", "", "XBackend", "ServiceImport", "InferencePool", "Bucket"}).Draw(t, "kind"); kind {
	case "":
	case "XBackend":
		ref.Group, ref.Kind, ref.Namespace = new(gwv1.Group(gwxv1alpha1.GroupName)), &kind, nil
	case "ServiceImport":
		ref.Group, ref.Kind = new(gwv1.Group(mcsv1beta1.GroupName)), &kind
	case "InferencePool":
		ref.Group, ref.Kind = new(gwv1.Group(poolsv1.GroupVersion.Group)), &kind
	default:
		ref.Kind = &kind
	}
	return ref
}

// drawGRPCRoute makes a GRPCRoute of an HTTPRoute.
func drawGRPCRoute(t *rapid.T) *gwv1.GRPCRoute {
	from := drawHTTPRoute(t)
	r := &gwv1.GRPCRoute{ObjectMeta: from.ObjectMeta}
	r.Spec.CommonRouteSpec, r.Spec.Hostnames = from.Spec.CommonRouteSpec, from.Spec.Hostnames
	for _, refs := range backendRefs(from) {
		r.Spec.Rules = append(r.Spec.Rules, gwv1.GRPCRouteRule{BackendRefs: []gwv1.GRPCBackendRef{{BackendRef: refs[0]}}})
	}
	return r
}

// backendRefs returns the backends of each rule.
func backendRefs(r *gwv1.HTTPRoute) (out [][]gwv1.BackendRef) {
	for _, rule := range r.Spec.Rules {
		var refs []gwv1.BackendRef
		for _, ref := range rule.BackendRefs {
			refs = append(refs, ref.BackendRef)
		}
		out = append(out, refs)
	}
	return out
}
