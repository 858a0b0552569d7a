package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// While the API server doesn't answer for a Secret that a listener names, a change of
// endpoints reaches proxies, and the listener waits for its certificate.
func TestEndpointsDontWaitForContents(t *testing.T) {
	in := install(t)
	in.apply(gatewayOf("gatehouse"),
		`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: backend}, spec: {ports: [{port: 80}]}}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: route}, spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: backend, port: 80}]}]}}`)
	endpoints := func(address string) {
		t.Helper()
		in.apply(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: team, name: backend, labels: {kubernetes.io/service-name: backend}}, addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [` + address + `]}]}`)
	}
	endpoints("192.0.2.1")
	late := certs.For("late.test")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "late"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.crt": late.PEM(), "tls.key": late.KeyPEM()},
	}
	if err := in.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	r := in.start()
	// version returns that of the first resource of a type whose name has a part.
	version := func(kind, part string) (out string) {
		info, _ := r.server.Gateway(object.Name{Namespace: "team", Name: "web"})
		for _, resource := range info.Resources {
			if resource.Type == kind && strings.Contains(resource.Name, part) && out == "" {
				out = resource.Version
			}
		}
		return out
	}
	var before string
	in.until("the endpoints are served", func() bool { before = version("endpoints", "team/backend"); return before != "" })

	release := r.withhold("/secrets/late")
	in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web}, spec: {gatewayClassName: gatehouse,
		listeners: [{name: http, port: 80, protocol: HTTP}, {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: late}]}}]}}`)
	in.until("the Secret is asked for", func() bool { return r.withheld.Load() > 0 })
	endpoints("192.0.2.2")
	in.until("the new endpoints are served", func() bool { return version("endpoints", "team/backend") != before })
	if r.withheld.Load() == 0 {
		t.Error("the endpoints have waited for the Secret")
	}
	if version("listener", "tls-443") != "" {
		t.Error("the listener is served before its certificate is known")
	}
	release()
	in.until("the listener is served", func() bool { return version("listener", "tls-443") != "" })
	if version("secret", "team/late") == "" {
		t.Error("the listener is served without its certificate")
	}
}

// While the API server doesn't answer for a Secret that one Gateway names, what changes of
// another one reaches its proxies.
func TestOthersDontWaitForContents(t *testing.T) {
	in := install(t)
	in.apply(gatewayOf("gatehouse"), namedGateway("other", "gatehouse"))
	if err := in.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "late"}}); err != nil {
		t.Fatal(err)
	}
	r := in.start()
	routed := func(gateway, host string) {
		t.Helper()
		in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: ` + gateway + `},
			spec: {parentRefs: [{name: ` + gateway + `}], rules: [{filters: [{type: RequestRedirect, requestRedirect: {hostname: ` + host + `}}]}]}}`)
	}
	version := func(gateway string) string {
		info, _ := r.server.Gateway(object.Name{Namespace: "team", Name: gateway})
		for _, resource := range info.Resources {
			if resource.Type == "routes" {
				return resource.Version
			}
		}
		return ""
	}
	before := map[string]string{}
	in.until("the listeners are served", func() bool {
		before["web"], before["other"] = version("web"), version("other")
		return before["web"] != "" && before["other"] != ""
	})
	routed("web", "first.test")
	routed("other", "first.test")
	in.until("the routes are served", func() bool { return version("web") != before["web"] && version("other") != before["other"] })
	before["web"], before["other"] = version("web"), version("other")

	release := r.withhold("/secrets/late")
	in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web}, spec: {gatewayClassName: gatehouse,
		listeners: [{name: http, port: 80, protocol: HTTP}, {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: late}]}}]}}`)
	in.until("the Secret is asked for", func() bool { return r.withheld.Load() > 0 })
	routed("web", "second.test")
	routed("other", "second.test")
	in.until("the other Gateway's route is served", func() bool { return version("other") != before["other"] })
	if r.withheld.Load() == 0 {
		t.Error("the other Gateway has waited for the Secret")
	}
	if version("web") != before["web"] {
		t.Error("the Gateway that names the Secret hasn't waited for it")
	}
	release()
	in.until("the Gateway's own route is served", func() bool { return version("web") != before["web"] })
}
