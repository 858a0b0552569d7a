package migrate

import (
	"fmt"
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
	traffic       v1alpha1.TrafficSettings          // of the Gateway, beside these two
	addresses     map[string]v1alpha1.Authorization // of the Gateway
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
		switch {
		case c.options.NoConfig:
		case c.closed.ingresses != nil:
			c.find(nil, Finding{Verdict: NotPossible, Opens: true, Message: "the ConfigMap that the settings name isn't there: create it, or name none"})
		default:
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
		row := entryOf[key]
		if row == nil {
			c.find(nil, Finding{Annotation: key, Value: value, Verdict: NotPossible, Opens: true, Message: "ingress-nginx has no such entry, or it is newer than this; what it does isn't known"})
			continue
		}
		f := Finding{Annotation: key, Value: value, Verdict: row.verdict, Message: row.text}
		if row.apply != nil {
			if verdict, text := row.apply(c, value); verdict != "" {
				f.Verdict, f.Message = verdict, text
			}
		}
		f.Opens = row.protects && f.Verdict == NotPossible && value != "" && value != "false"
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
			n, ok := size(value)
			if c.config.bodySize = &n; !ok {
				c.config.bodySize = new(intstr.FromString("1Mi"))
				f.Verdict, f.Opens, f.Message = NotPossible, true, fmt.Sprintf("%q is no size", value)
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
