package migrate

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// config is what holds for all Ingresses.
type config struct {
	sslRedirect   bool
	forceRedirect bool
	redirectCode  int
	bodySize      *intstr.IntOrString // nil for no bound
	hsts          *v1alpha1.StrictTransportSecurity
}

const clientAddress = "client of the GatewayParameters, by which policies know a client's address behind a load balancer"

// guards are the entries of the controller's ConfigMap that let less through, with what to do.
var guards = map[string]string{
	"allowlist-source-range": "an AuthPolicy with addresses for the Gateway", "whitelist-source-range": "an AuthPolicy with addresses for the Gateway",
	"denylist-source-range": "an AuthPolicy with addresses for the Gateway", "block-cidrs": "an AuthPolicy with addresses for the Gateway",
	"block-user-agents": "an AuthPolicy with when for the Gateway", "block-referers": "an AuthPolicy with when for the Gateway",
	"global-auth-url": "an AuthPolicy with external for the Gateway", "global-auth-snippet": noSnippets,
	"enable-modsecurity": "a service that decides, by external of an AuthPolicy", "enable-owasp-modsecurity-crs": "a service that decides, by external of an AuthPolicy", "modsecurity-snippet": "a service that decides, by external of an AuthPolicy",
	"http-snippet": noSnippets, "server-snippet": noSnippets, "location-snippet": noSnippets, "main-snippet": noSnippets, "stream-snippet": noSnippets,
	"use-proxy-protocol": clientAddress, "use-forwarded-headers": clientAddress, "enable-real-ip": clientAddress,
	"proxy-real-ip-cidr": clientAddress, "forwarded-for-header": clientAddress, "compute-full-forwarded-for": clientAddress,
	"proxy-set-headers": "a filter RequestHeaderModifier, or requestHeaders of a RouteFilter", "hide-headers": "response.headers.remove of a TrafficPolicy of the Gateway",
	"add-headers": "response.headers.set of a TrafficPolicy of the Gateway", "ssl-protocols": "tls of the GatewayParameters", "ssl-ciphers": "tls of the GatewayParameters",
	"ssl-reject-handshake": "nothing: hosts without a certificate have no HTTPS",
	"limit-rate":           "no counterpart: answers are sent as fast as the client takes them",
}

// readConfig reads the controller's ConfigMap, over ingress-nginx's defaults.
func (c *conversion) readConfig() {
	c.config = config{
		sslRedirect: true, redirectCode: 308, bodySize: new(intstr.FromString("1Mi")),
		hsts: &v1alpha1.StrictTransportSecurity{MaxAge: new(inSeconds(31_536_000)), IncludeSubDomains: true},
	}
	for _, f := range []Finding{{Annotation: "proxy-body-size", Value: "1m"}, {Annotation: "hsts", Value: "true"}} {
		f.Verdict, f.Message = Converted, "ingress-nginx's own default, by a TrafficPolicy of the Gateway"
		if c.input.Config == nil || c.input.Config.Data[f.Annotation] == "" {
			c.find(nil, f)
		}
	}
	if c.input.Config == nil {
		if !c.options.NoConfig {
			c.find(nil, Finding{Verdict: Differs, Opens: c.options.Cluster, Message: "the controller's ConfigMap isn't there, and its defaults are taken: name it with --configmap, or say --configmap= if there is none"})
		}
		return
	}
	hsts := true
	defer func() {
		if !hsts {
			c.config.hsts = nil
		}
	}()
	data := c.input.Config.Data
	for _, key := range slices.Sorted(maps.Keys(data)) {
		value := data[key]
		f := Finding{Annotation: key, Value: value, Verdict: Converted}
		switch key {
		case "ssl-redirect":
			c.config.sslRedirect = isOn(value, true)
		case "force-ssl-redirect":
			c.config.forceRedirect = isOn(value, false)
		case "http-redirect-code":
			if n, err := strconv.Atoi(value); err == nil && slices.Contains(redirectCodes, n) {
				c.config.redirectCode = n
			}
		case "proxy-body-size":
			if n, ok := size(value); ok {
				c.config.bodySize = &n
			}
		case "hsts":
			hsts = isOn(value, true)
		case "hsts-max-age":
			if n, err := strconv.Atoi(value); err == nil {
				c.config.hsts.MaxAge = new(inSeconds(n))
			}
		case "hsts-include-subdomains":
			c.config.hsts.IncludeSubDomains = isOn(value, true)
		case "hsts-preload":
			c.config.hsts.Preload = isOn(value, false)
		default:
			f.Verdict, f.Message = NotPossible, "an entry of the controller's ConfigMap that isn't converted"
			if instead, ok := guards[key]; ok {
				f.Opens, f.Message = value != "" && value != "false", "write "+instead
				if instead == noSnippets {
					f.Message = instead
				}
			}
		}
		c.find(nil, f)
	}
}

// inSeconds is a number of seconds as a duration, whose numbers have five digits at most.
func inSeconds(n int) gwv1.Duration {
	switch n = min(n, 99_999*3600); {
	case n < 3600:
		return gwv1.Duration(strconv.Itoa(n) + "s")
	case n%3600 == 0:
		return gwv1.Duration(strconv.Itoa(n/3600) + "h")
	}
	return gwv1.Duration(strconv.Itoa(n/3600) + "h" + strconv.Itoa(n%3600) + "s")
}
