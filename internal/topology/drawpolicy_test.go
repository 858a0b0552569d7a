package topology

import (
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// working are objects that belong together, under names that are drawn too: without
// them, few histories would come to a route whose backend has a policy.
const working = `
kind: GatewayClass
metadata: {name: gatehouse}
spec: {controllerName: gatehouse.dev/controller}
---
kind: Gateway
metadata: {namespace: one, name: a}
spec:
  gatewayClassName: gatehouse
  allowedListeners: {namespaces: {from: All}}
  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: a}}
  tls: {backend: {clientCertificateRef: {name: a}}}
  listeners:
  - {name: l0, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: l1, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}
---
kind: GatewayParameters
metadata: {namespace: one, name: a}
spec: {client: {http3: true}}
---
kind: ListenerSet
metadata: {namespace: two, name: a}
spec:
  parentRef: {namespace: one, name: a}
  listeners: [{name: l0, port: 80, protocol: HTTP, hostname: b.test}]
---
kind: HTTPRoute
metadata: {namespace: one, name: a, labels: {guarded: "yes"}}
spec:
  parentRefs: [{name: a}]
  rules: [{backendRefs: [{name: a, port: 80}]}, {backendRefs: [{group: gateway.networking.x-k8s.io, kind: XBackend, name: a}]}]
---
kind: GRPCRoute
metadata: {namespace: two, name: a}
spec:
  parentRefs: [{namespace: one, name: a}, {kind: ListenerSet, name: a}]
  rules: [{backendRefs: [{namespace: one, name: a, port: 80}]}]
---
kind: ReferenceGrant
metadata: {namespace: one, name: a}
spec: {from: [{group: gateway.networking.k8s.io, kind: GRPCRoute, namespace: two}], to: [{kind: Service}]}
---
kind: Service
metadata: {namespace: one, name: a}
spec: {ports: [{port: 80, targetPort: 1, name: http}]}
---
kind: Secret
metadata: {namespace: one, name: a}
data: {tls.crt: "${crt ecdsa}", tls.key: "${key ecdsa}"}
---
kind: ConfigMap
metadata: {namespace: one, name: a}
data: {ca.crt: ${pem ecdsa}}
---
kind: BackendTLSPolicy
metadata: {namespace: one, name: a}
spec:
  targetRefs: [{kind: Service, name: a}]
  validation: {hostname: a.test, caCertificateRefs: [{kind: ConfigMap, name: a}]}
---
kind: XBackendTrafficPolicy
metadata: {namespace: one, name: a}
spec: {targetRefs: [{kind: Service, name: a}], retryConstraint: {budget: {percent: 20}}}
---
kind: AuthPolicy
metadata: {namespace: one, name: a}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}]
  targetSelectors: [{kind: HTTPRoute, matchLabels: {guarded: "yes"}}]
  authentication: {robots: {apiKey: {secretRef: {name: a}}}}
---
kind: RateLimitPolicy
metadata: {namespace: one, name: a}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}]
  limits: {each: {rates: [{limit: 1, window: 1m}], counters: [client.address]}}
---
kind: TrafficPolicy
metadata: {namespace: one, name: a}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}]
  request: {maxBodySize: 10Mi}
---
kind: XBackend
metadata: {namespace: one, name: a}
spec:
  type: ExternalHostname
  externalHostname: {hostname: x.test}
  port: {number: 443}
  tls: {mode: ServerOnly, validation: {hostname: x.test, caCertificateRefs: [{kind: ConfigMap, name: a}]}}`

// The generators of policies and of backends that are no Services.

func drawTLSPolicy(t *rapid.T) *gwv1.BackendTLSPolicy {
	p := &gwv1.BackendTLSPolicy{ObjectMeta: drawMeta(t)}
	for range rapid.IntRange(1, 2).Draw(t, "targets") {
		var target gwv1.LocalPolicyTargetReferenceWithSectionName
		target.Kind, target.Name = "Service", someObjectName.Draw(t, "service")
		target.SectionName = maybe(t, rapid.SampledFrom([]gwv1.SectionName{"http", "nonesuch"}), "section")
		p.Spec.TargetRefs = append(p.Spec.TargetRefs, target)
	}
	p.Spec.Validation = drawValidation(t)
	return p
}

func drawValidation(t *rapid.T) gwv1.BackendTLSPolicyValidation {
	v := gwv1.BackendTLSPolicyValidation{
		Hostname:                "a.test",
		WellKnownCACertificates: maybe(t, rapid.Just(gwv1.WellKnownCACertificatesSystem), "system"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "authorities") {
		group, kind := drawAuthorityKind(t)
		v.CACertificateRefs = append(v.CACertificateRefs, gwv1.LocalObjectReference{
			Group: group, Kind: kind, Name: someObjectName.Draw(t, "authority"),
		})
	}
	return v
}

func drawAuthorityKind(t *rapid.T) (gwv1.Group, gwv1.Kind) {
	name := rapid.SampledFrom([]gwv1.Kind{"ConfigMap", "Secret", "ClusterTrustBundle", "Bucket"}).Draw(t, "kind")
	if name == "ClusterTrustBundle" {
		return certificatesv1.GroupName, name
	}
	return "", name
}

func drawBackendTrafficPolicy(t *rapid.T) *gwxv1alpha1.XBackendTrafficPolicy {
	p := &gwxv1alpha1.XBackendTrafficPolicy{ObjectMeta: drawMeta(t)}
	for range rapid.IntRange(1, 2).Draw(t, "targets") {
		p.Spec.TargetRefs = append(p.Spec.TargetRefs, gwxv1alpha1.LocalPolicyTargetReference{
			Kind: "Service", Name: someObjectName.Draw(t, "service"),
		})
	}
	if percent := maybe(t, rapid.SampledFrom([]int{10, 20, 101}), "percent"); percent != nil {
		p.Spec.RetryConstraint = &gwxv1alpha1.RetryConstraint{Budget: &gwxv1alpha1.BudgetDetails{Percent: percent}}
	}
	return p
}

// drawInheritedTargets draws what a policy that is inherited is for.
func drawInheritedTargets(t *rapid.T) (out []gwv1.LocalPolicyTargetReferenceWithSectionName) {
	for range rapid.IntRange(1, 2).Draw(t, "targets") {
		var target gwv1.LocalPolicyTargetReferenceWithSectionName
		target.Group, target.Name = gwv1.GroupName, someObjectName.Draw(t, "target")
		target.Kind = rapid.SampledFrom([]gwv1.Kind{"Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "Bucket"}).Draw(t, "kind")
		target.SectionName = maybe(t, rapid.SampledFrom([]gwv1.SectionName{"l0", "l1", "r0", "nonesuch"}), "section")
		out = append(out, target)
	}
	return out
}

// drawSelectors draws what a policy that is inherited is for by labels.
func drawSelectors(t *rapid.T) (out []v1alpha1.TargetSelector) {
	for range rapid.IntRange(0, 2).Draw(t, "selectors") {
		s := v1alpha1.TargetSelector{MatchLabels: map[string]gwv1.LabelValue{}}
		s.Group = rapid.SampledFrom([]gwv1.Group{"", gwv1.GroupName, "example.com"}).Draw(t, "group")
		s.Kind = rapid.SampledFrom([]gwv1.Kind{"Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "TLSRoute"}).Draw(t, "kind")
		for name, value := range someLabels.Draw(t, "labels") {
			s.MatchLabels[name] = gwv1.LabelValue(value)
		}
		s.SectionName = maybe(t, rapid.SampledFrom([]gwv1.SectionName{"l0", "r0", "nonesuch"}), "section")
		out = append(out, s)
	}
	return out
}

func drawRateLimitPolicy(t *rapid.T) *v1alpha1.RateLimitPolicy {
	p := &v1alpha1.RateLimitPolicy{ObjectMeta: drawMeta(t)}
	p.Spec.TargetRefs, p.Spec.TargetSelectors = drawInheritedTargets(t), drawSelectors(t)
	limits := v1alpha1.RateLimits{Limits: map[string]v1alpha1.RateLimit{}}
	for _, name := range []string{"a", "b"} {
		if rapid.Bool().Draw(t, "limit") {
			limits.Limits[name] = v1alpha1.RateLimit{
				Rates:    []v1alpha1.Rate{{Limit: rapid.Int32Range(1, 3).Draw(t, "most"), Window: rapid.SampledFrom([]gwv1.Duration{"1s", "1m", "2d"}).Draw(t, "window")}},
				Counters: rapid.SampledFrom([][]string{nil, {"client.address"}, {"nonesuch"}}).Draw(t, "counters"),
				When:     rapid.SampledFrom([]string{"", "request.method == 'GET'", "nonesuch"}).Draw(t, "when"),
			}
		}
	}
	drawLayer(t, limits, &p.Spec.RateLimits, &p.Spec.Defaults, &p.Spec.Overrides, func(s v1alpha1.Strategy) *v1alpha1.RateLimitLayer {
		return &v1alpha1.RateLimitLayer{Strategy: s, RateLimits: limits}
	})
	return p
}

// drawLayer puts what a policy says into one of the places where it can stand.
func drawLayer[S, L any](t *rapid.T, says S, bare *S, defaults, overrides **L, layer func(v1alpha1.Strategy) *L) {
	strategy := rapid.SampledFrom([]v1alpha1.Strategy{v1alpha1.Atomic, v1alpha1.Merge}).Draw(t, "strategy")
	switch rapid.IntRange(0, 2).Draw(t, "layer") {
	case 0:
		*bare = says
	case 1:
		*defaults = layer(strategy)
	default:
		*overrides = layer(strategy)
	}
}

func drawTrafficPolicy(t *rapid.T) *v1alpha1.TrafficPolicy {
	p := &v1alpha1.TrafficPolicy{ObjectMeta: drawMeta(t)}
	p.Spec.TargetRefs, p.Spec.TargetSelectors = drawInheritedTargets(t), drawSelectors(t)
	if rapid.Bool().Draw(t, "of a service") {
		p.Spec.TargetRefs = append(p.Spec.TargetRefs, gwv1.LocalPolicyTargetReferenceWithSectionName{
			LocalPolicyTargetReference: gwv1.LocalPolicyTargetReference{Kind: "Service", Name: someObjectName.Draw(t, "service")},
			SectionName:                maybe(t, rapid.Just(gwv1.SectionName("http")), "port"),
		})
	}
	settings := v1alpha1.TrafficSettings{}
	settings.Request.MaxBodySize = maybe(t, rapid.Map(rapid.SampledFrom([]string{"1", "10Mi", "Unlimited", "nonesuch"}), intstr.Parse), "size")
	bandwidth := rapid.Map(rapid.SampledFrom([]string{"1Mi", "5", "Unlimited", "nonesuch"}), intstr.Parse)
	settings.Request.Bandwidth, settings.Response.Bandwidth = maybe(t, bandwidth, "request bandwidth"), maybe(t, bandwidth, "response bandwidth")
	settings.Request.AdmissionControl = maybe(t, rapid.SampledFrom([]v1alpha1.AdmissionControl{{}, {Disabled: true}, {Window: new(gwv1.Duration("1h"))}}), "admission")
	settings.Response.Compression = maybe(t, rapid.SampledFrom([]v1alpha1.Compression{
		{}, {Disabled: true}, {Algorithms: []v1alpha1.CompressionAlgorithm{{Type: v1alpha1.Gzip}}}, {ContentTypes: []string{"nonesuch"}},
	}), "compression")
	settings.Backend.LoadBalancing = maybe(t, rapid.SampledFrom([]v1alpha1.LoadBalancing{
		{Type: v1alpha1.RandomLoadBalancing}, {Type: v1alpha1.LeastRequestLoadBalancing}, {Type: "nonesuch"},
		{Type: v1alpha1.ConsistentHashLoadBalancing, ConsistentHash: &v1alpha1.ConsistentHash{Type: v1alpha1.SourceIPHash}},
	}), "balancing")
	duration := func(label string) *gwv1.Duration {
		return maybe(t, rapid.SampledFrom([]gwv1.Duration{"0s", "5s", "nonesuch"}), label)
	}
	settings.Request.Timeout, settings.Request.IdleTimeout = duration("timeout"), duration("idle timeout")
	settings.Request.Retry = maybe(t, rapid.SampledFrom([]v1alpha1.TrafficRetry{{}, {Codes: []int32{503}}, {Codes: []int32{200}}}), "retry")
	settings.Request.Buffering = maybe(t, rapid.SampledFrom([]v1alpha1.Buffering{{}, {Disabled: true}}), "buffering")
	settings.Response.Headers = maybe(t, rapid.SampledFrom([]v1alpha1.AnswerHeaders{{}, {Disabled: true}, {Remove: []string{"a"}}}), "headers")
	settings.Response.StrictTransportSecurity = maybe(t, rapid.SampledFrom([]v1alpha1.StrictTransportSecurity{{}, {Disabled: true}, {Preload: true}}), "hsts")
	settings.Response.SecurityHeaders = maybe(t, rapid.SampledFrom([]v1alpha1.SecurityHeaders{{}, {Disabled: true}, {FrameOptions: "nonesuch"}}), "security headers")
	settings.Response.ErrorPages = maybe(t, rapid.SampledFrom([]v1alpha1.ErrorPages{
		{Disabled: true}, {Pages: []v1alpha1.ErrorPage{{Statuses: []string{"404"}, ConfigMapRef: &v1alpha1.KeyRef{Name: "a", Key: "ca.crt"}}}}, {},
	}), "pages")
	settings.Request.Faults = maybe(t, rapid.SampledFrom([]v1alpha1.Faults{{}, {Disabled: true}, {Abort: &v1alpha1.FaultAbort{}}}), "faults")
	settings.Backend.ConnectTimeout = duration("connect timeout")
	settings.Backend.Connections = maybe(t, rapid.SampledFrom([]v1alpha1.BackendConnections{{}, {IdleTimeout: new(gwv1.Duration("5s"))}}), "connections")
	settings.Backend.CircuitBreaker = maybe(t, rapid.SampledFrom([]v1alpha1.CircuitBreaker{{}, {MaxRequests: new(int32(5))}}), "circuit breaker")
	settings.Backend.RetryBudget = maybe(t, rapid.SampledFrom([]v1alpha1.RetryBudget{{Percent: new(int32(5))}, {Percent: new(int32(500))}}), "retry budget")
	settings.Backend.OutlierDetection = maybe(t, rapid.SampledFrom([]v1alpha1.OutlierDetection{{}, {Disabled: true}, {Interval: new(gwv1.Duration("nonesuch"))}}), "outliers")
	settings.Backend.HealthCheck = maybe(t, rapid.SampledFrom([]v1alpha1.HealthCheck{{Type: v1alpha1.TCPCheck}, {Disabled: true}, {Type: "nonesuch"}}), "health check")
	settings.Backend.RoutingType = maybe(t, rapid.SampledFrom([]v1alpha1.RoutingType{v1alpha1.RoutingEndpoint, v1alpha1.RoutingService, "nonesuch"}), "routing type")
	drawLayer(t, settings, &p.Spec.TrafficSettings, &p.Spec.Defaults, &p.Spec.Overrides, func(s v1alpha1.Strategy) *v1alpha1.TrafficLayer {
		return &v1alpha1.TrafficLayer{Strategy: s, TrafficSettings: settings}
	})
	return p
}

func drawAuthPolicy(t *rapid.T) *v1alpha1.AuthPolicy {
	p := &v1alpha1.AuthPolicy{ObjectMeta: drawMeta(t)}
	p.Spec.TargetRefs, p.Spec.TargetSelectors = drawInheritedTargets(t), drawSelectors(t)
	rules := v1alpha1.AuthRules{Authentication: map[string]v1alpha1.Authentication{}, Authorization: map[string]v1alpha1.Authorization{}}
	for _, name := range []string{"a", "b"} {
		secret := someName.Draw(t, "secret")
		switch rapid.IntRange(0, 7).Draw(t, "rule") {
		case 7:
			rules.Authorization[name] = v1alpha1.Authorization{CSRF: &v1alpha1.CSRF{AllowedOrigins: rapid.SampledFrom([][]string{nil, {"https://a.test"}, {"nonesuch"}}).Draw(t, "origins")}}
		case 0:
			rules.Authentication[name] = v1alpha1.Authentication{APIKey: &v1alpha1.APIKey{SecretRef: v1alpha1.SecretRef{Name: secret}}}
		case 1:
			rules.Authentication[name] = v1alpha1.Authentication{JWT: &v1alpha1.JWT{
				Issuer: "x", JWKS: &v1alpha1.JWKS{ConfigMapRef: &v1alpha1.KeyRef{Name: secret}},
			}}
		case 3:
			l := someLocation.Draw(t, "location")
			jwt := &v1alpha1.JWT{Issuer: l.Issuer}
			if l.URI != "" {
				jwt.Issuer, jwt.JWKS = "x", &v1alpha1.JWKS{URI: &l.URI}
			}
			rules.Authentication[name] = v1alpha1.Authentication{JWT: jwt}
		case 2:
			rules.Authorization[name] = v1alpha1.Authorization{Addresses: &v1alpha1.AuthAddresses{Allow: []string{"192.0.2.0/24"}}}
		case 4:
			rules.Authorization[name] = v1alpha1.Authorization{External: drawExternal(t)}
		}
	}
	drawLayer(t, rules, &p.Spec.AuthRules, &p.Spec.Defaults, &p.Spec.Overrides, func(s v1alpha1.Strategy) *v1alpha1.AuthLayer {
		return &v1alpha1.AuthLayer{Strategy: s, AuthRules: rules}
	})
	return p
}

func drawExternal(t *rapid.T) *v1alpha1.ExternalAuth {
	e := &v1alpha1.ExternalAuth{Protocol: rapid.SampledFrom([]gwv1.HTTPRouteExternalAuthProtocol{"HTTP", "GRPC", "HTTP", "x"}).Draw(t, "protocol")}
	e.FailureMode = rapid.SampledFrom([]v1alpha1.FailureMode{"", v1alpha1.FailureOpen}).Draw(t, "failureMode")
	e.BackendRef.Name = gwv1.ObjectName(someName.Draw(t, "service"))
	e.BackendRef.Port = new(gwv1.PortNumber(somePort.Draw(t, "port")))
	if rapid.Bool().Draw(t, "xbackend") {
		e.BackendRef.Group, e.BackendRef.Kind = new(gwv1.Group("gateway.networking.x-k8s.io")), new(gwv1.Kind("XBackend"))
	}
	return e
}

var someLocation = rapid.SampledFrom([]keyset.Location{{Issuer: "https://id.test"}, {URI: "https://id.test/keys"}, {URI: "http://id.test/keys"}})

func drawXBackend(t *rapid.T) *gwxv1alpha1.XBackend {
	b := &gwxv1alpha1.XBackend{ObjectMeta: drawMeta(t)}
	b.Spec.Type = rapid.SampledFrom([]gwxv1alpha1.BackendType{
		gwxv1alpha1.BackendTypeExternalHostname, gwxv1alpha1.BackendTypeExternalHostname, gwxv1alpha1.BackendTypeEndpointSelector,
	}).Draw(t, "type")
	b.Spec.ExternalHostname = &gwxv1alpha1.ExternalHostnameBackend{
		Hostname: rapid.SampledFrom([]gwv1.PreciseHostname{"x.test", "y.test", "10.0.0.1"}).Draw(t, "hostname"),
	}
	b.Spec.Port.Number = gwxv1alpha1.PortNumber(somePort.Draw(t, "port"))
	b.Spec.Protocol = maybe(t, rapid.SampledFrom([]gwxv1alpha1.BackendProtocol{
		gwxv1alpha1.BackendProtocolHTTP, gwxv1alpha1.BackendProtocolHTTP2, gwxv1alpha1.BackendProtocolTCP,
	}), "protocol")
	if rapid.Bool().Draw(t, "tls") {
		v := drawValidation(t)
		b.Spec.TLS = &gwxv1alpha1.BackendTLS{Mode: gwxv1alpha1.BackendTLSModeServerOnly, Validation: &v}
	}
	return b
}

// drawKeptCertificate draws what is kept of a Secret; none of it stands for no longer. When
// a chain ends is a property of the chain: certificates that differ in it have different ones.
func drawKeptCertificate(t *rapid.T, name object.Name) KeptCertificate {
	if rapid.IntRange(0, 3).Draw(t, "forgotten?") == 0 {
		return KeptCertificate{}
	}
	end := rapid.Int64Range(1, 2).Draw(t, "end")
	pair := &Certificate{
		Name: name, Chain: fmt.Sprintf("a chain until %d", end), Key: "a key", Names: []string{"*.example.com"},
		Validity: Validity{NotAfter: time.Unix(end, 0)},
	}
	return KeptCertificate{Pair: pair, Until: rapid.SampledFrom([]time.Time{{}, time.Unix(1, 0)}).Draw(t, "until")}
}
