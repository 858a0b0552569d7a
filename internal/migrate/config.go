package migrate

import (
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

// guards are the entries of the controller's ConfigMap that let less through, with what to do.
var guards = map[string]string{
	"allowlist-source-range": "an AuthPolicy with addresses for the Gateway", "whitelist-source-range": "an AuthPolicy with addresses for the Gateway",
	"denylist-source-range": "an AuthPolicy with addresses for the Gateway", "block-cidrs": "an AuthPolicy with addresses for the Gateway",
	"block-user-agents": "an AuthPolicy with when for the Gateway", "block-referers": "an AuthPolicy with when for the Gateway",
	"global-auth-url": "an AuthPolicy with external for the Gateway", "global-auth-snippet": noSnippets,
	"enable-modsecurity": "a service that decides, by external of an AuthPolicy", "enable-owasp-modsecurity-crs": "a service that decides, by external of an AuthPolicy", "modsecurity-snippet": "a service that decides, by external of an AuthPolicy",
	"http-snippet": noSnippets, "server-snippet": noSnippets, "location-snippet": noSnippets, "main-snippet": noSnippets, "stream-snippet": noSnippets,
	"limit-rate": "no counterpart: answers are sent as fast as the client takes them",
}

// readConfig reads the controller's ConfigMap, over ingress-nginx's defaults.
func (c *conversion) readConfig() {
	c.config = config{
		sslRedirect: true, redirectCode: 308, bodySize: new(intstr.FromString("1Mi")),
		hsts: &v1alpha1.StrictTransportSecurity{MaxAge: new(hstsAge(31_536_000)), IncludeSubDomains: true},
	}
	for _, f := range []Finding{{Annotation: "proxy-body-size", Value: "1m"}, {Annotation: "hsts", Value: "true"}} {
		f.Verdict, f.Message = Converted, "ingress-nginx's own default, by a TrafficPolicy of the Gateway"
		if c.input.Config == nil || c.input.Config.Data[f.Annotation] == "" {
			c.find(nil, f)
		}
	}
	if c.input.Config == nil {
		return
	}
	hsts := true
	defer func() {
		if !hsts {
			c.config.hsts = nil
		}
	}()
	data := c.input.Config.Data
	for _, key := range sortedKeys(data) {
		value := data[key]
		f := Finding{Annotation: key, Value: value, Verdict: Converted}
		switch key {
		case "ssl-redirect":
			c.config.sslRedirect = value == "true"
		case "force-ssl-redirect":
			c.config.forceRedirect = value == "true"
		case "http-redirect-code":
			if n, err := strconv.Atoi(value); err == nil {
				c.config.redirectCode = n
			}
		case "proxy-body-size":
			if n, ok := size(value); ok {
				c.config.bodySize = &n
			}
		case "hsts":
			hsts = value == "true"
		case "hsts-max-age":
			if n, err := strconv.Atoi(value); err == nil {
				c.config.hsts.MaxAge = new(hstsAge(n))
			}
		case "hsts-include-subdomains":
			c.config.hsts.IncludeSubDomains = value == "true"
		case "hsts-preload":
			c.config.hsts.Preload = value == "true"
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

// hstsAge is a number of seconds as a duration, which has hours at most.
func hstsAge(seconds int) gwv1.Duration {
	if seconds%3600 == 0 {
		return gwv1.Duration(strconv.Itoa(seconds/3600) + "h")
	}
	return gwv1.Duration(strconv.Itoa(seconds/3600) + "h" + strconv.Itoa(seconds%3600) + "s")
}
