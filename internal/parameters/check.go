package parameters

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Check finds what the schema lets through and nobody could use: a pod
// that the API server refuses, for one, and with it the whole fleet.
func Check(o *v1alpha1.GatewayParameters) field.ErrorList {
	spec := field.NewPath("spec")
	errs := checkSettings(spec, &o.Spec.Settings)
	if o.Spec.Overrides != nil {
		errs = append(errs, checkSettings(spec.Child("overrides"), o.Spec.Overrides)...)
	}
	if a := o.Spec.Allow; a != nil {
		errs = append(errs, checkRanges(spec.Child("allow", "addresses"), a.Addresses)...)
		errs = append(errs, checkRanges(spec.Child("allow", "externalIPs"), a.ExternalIPs)...)
		errs = append(errs, checkHostnames(spec.Child("allow", "hostnames"), a.Hostnames)...)
		errs = append(errs, checkKeySets(spec.Child("allow", "keySets"), a.KeySets)...)
	}
	return errs
}

// checkSettings checks one level by itself.
func checkSettings(at *field.Path, s *v1alpha1.Settings) (errs field.ErrorList) {
	if s.Pod != nil {
		errs = append(errs, checkLabels(at.Child("pod"), s.Pod.Labels, s.Pod.Annotations)...)
		errs = append(errs, metav1validation.ValidateLabels(s.Pod.NodeSelector, at.Child("pod", "nodeSelector"))...)
	}
	if s.Service != nil {
		errs = append(errs, checkService(at.Child("service"), s.Service)...)
	}
	for i := range s.Patches {
		errs = append(errs, checkPatch(at.Child("patches").Index(i), &s.Patches[i])...)
	}
	if s.Envoy != nil && s.Envoy.Bootstrap != nil && !isJSON(s.Envoy.Bootstrap.Raw, '{') {
		errs = append(errs, field.Invalid(at.Child("envoy", "bootstrap"), field.OmitValueType{}, "must be an object"))
	}
	if s.Envoy != nil {
		for i, p := range s.Envoy.Patches {
			if err := envoy.CheckPatch(envoy.Patch{Type: envoy.PatchTypes[string(p.Type)], Name: p.Name, Operations: p.Operations.Raw}); err != nil {
				errs = append(errs, field.Invalid(at.Child("envoy", "patches").Index(i), field.OmitValueType{}, err.Error()))
			}
		}
	}
	if r := s.Rollout; r != nil && r.Promotion != nil {
		errs = append(errs, checkDuration(at.Child("rollout", "promotion", "window"), r.Promotion.Window, time.Second, maxDrain)...)
	}
	if d := s.Drain; d != nil {
		errs = append(errs, checkDuration(at.Child("drain", "delay"), d.Delay, 0, maxDrain)...)
		errs = append(errs, checkDuration(at.Child("drain", "timeout"), d.Timeout, 0, maxDrain)...)
	}
	for i := range s.AccessLog {
		errs = append(errs, checkAccessLog(at.Child("accessLog").Index(i), &s.AccessLog[i])...)
	}
	if s.Tracing != nil && s.Tracing.OpenTelemetry != nil {
		errs = append(errs, checkHost(at.Child("tracing", "openTelemetry", "host"), s.Tracing.OpenTelemetry.Host)...)
	}
	if s.Limits != nil && s.Limits.Redis != nil {
		errs = append(errs, checkRedis(at.Child("limits", "redis"), s.Limits.Redis)...)
	}
	if s.Backends != nil {
		errs = append(errs, checkBackends(at.Child("backends"), s.Backends)...)
	}
	if s.Client != nil {
		errs = append(errs, checkRanges(at.Child("client", "trustedAddresses"), s.Client.TrustedAddresses)...)
	}
	if s.Client != nil && s.Client.AddressHeader != nil {
		errs = append(errs, checkAddressHeader(at.Child("client", "addressHeader"), *s.Client.AddressHeader)...)
	}
	if s.Client != nil && s.Client.Paths != nil {
		errs = append(errs, checkPaths(at.Child("client", "paths"), s.Client.Paths)...)
	}
	if s.Client != nil && s.Client.Limits != nil {
		l, at := s.Client.Limits, at.Child("client", "limits")
		errs = append(errs, checkDuration(at.Child("headersTimeout"), l.HeadersTimeout, time.Millisecond, maxLimit)...)
		errs = append(errs, checkDuration(at.Child("idleTimeout"), l.IdleTimeout, time.Millisecond, maxLimit)...)
		errs = append(errs, checkDuration(at.Child("connectionDuration"), l.ConnectionDuration, time.Millisecond, maxLimit)...)
	}
	return errs
}

const (
	maxDrain = 24 * time.Hour // longer than anybody waits for a pod to end
	maxLimit = 365 * 24 * time.Hour
)

// CheckWhole finds what can't be put into effect of the settings of a Gateway, all
// levels taken together.
func CheckWhole(s *v1alpha1.Settings, where Place) (errs field.ErrorList) {
	at := field.NewPath("spec")
	if s.Deployment != nil && s.Deployment.Autoscaling != nil {
		a, at := s.Deployment.Autoscaling, at.Child("deployment", "autoscaling")
		switch {
		case a.MaxReplicas == nil:
			errs = append(errs, field.Required(at.Child("maxReplicas"), "autoscaling needs to know how many proxies there may be"))
		case a.MinReplicas != nil && *a.MinReplicas > *a.MaxReplicas:
			errs = append(errs, field.Invalid(at.Child("minReplicas"), *a.MinReplicas, fmt.Sprintf("is more than maxReplicas, which is %d", *a.MaxReplicas)))
		}
	}
	if s.Container != nil {
		errs = append(errs, checkHostPorts(at.Child("container", "hostPorts"), s.Container.HostPorts)...)
	}
	if s.Container != nil && s.Container.Resources != nil {
		errs = append(errs, checkResources(at.Child("container", "resources"), s.Container.Resources)...)
	}
	if s.Limits != nil {
		errs = append(errs, checkLimits(at.Child("limits"), s.Limits)...)
	}
	if t := s.Tracing; t != nil && t.OpenTelemetry == nil && Sampling(t) > 0 {
		errs = append(errs, field.Required(at.Child("tracing", "openTelemetry"), "tracing needs a collector"))
	}
	if c := s.Client; c != nil && ptr.Deref(c.HTTP3, false) && ptr.Deref(c.ProxyProtocol, false) {
		errs = append(errs, field.Invalid(at.Child("client", "http3"), true, "can't be had together with proxyProtocol: there is no PROXY protocol over UDP"))
	}
	if c := s.Client; c != nil && len(c.TrustedAddresses) > 0 && ptr.Deref(c.TrustedHops, 0) > 0 {
		errs = append(errs, field.Invalid(at.Child("client", "trustedHops"), *c.TrustedHops,
			"can't be had together with trustedAddresses: proxies are known by their addresses, or by their number; set trustedHops to 0, or leave trustedAddresses out"))
	}
	if c := s.Client; c != nil && c.AddressHeader != nil && len(c.TrustedAddresses) == 0 {
		errs = append(errs, field.Required(at.Child("client", "trustedAddresses"),
			"addressHeader is believed of proxies with known addresses only, since anybody else could write any address there; write theirs, or leave addressHeader out"))
	}
	if len(errs) == 0 {
		errs = checkProxy(s)
		if where == Pods {
			errs = append(errs, checkFleet(s)...)
		}
	}
	return errs
}

// Sampling returns how many of a million requests are traced.
func Sampling(t *v1alpha1.Tracing) uint32 {
	const million = 1_000_000
	switch {
	case t.SamplingPercent != nil:
		return uint32(*t.SamplingPercent) * (million / 100)
	case t.SamplingFraction != nil:
		denominator := max(ptr.Deref(t.SamplingFraction.Denominator, 100), 1)
		return uint32(int64(t.SamplingFraction.Numerator) * million / int64(denominator))
	default:
		return million
	}
}

func checkLabels(at *field.Path, labels, annotations map[string]string) field.ErrorList {
	errs := metav1validation.ValidateLabels(labels, at.Child("labels"))
	return append(errs, apivalidation.ValidateAnnotations(annotations, at.Child("annotations"))...)
}

func checkService(at *field.Path, s *v1alpha1.Service) field.ErrorList {
	errs := checkLabels(at, s.Labels, s.Annotations)
	errs = append(errs, checkRanges(at.Child("loadBalancerSourceRanges"), s.LoadBalancerSourceRanges)...)
	listeners, ports := map[int32]bool{}, map[int32]bool{}
	for i, p := range s.NodePorts {
		at := at.Child("nodePorts").Index(i)
		if listeners[p.ListenerPort] {
			errs = append(errs, field.Duplicate(at.Child("listenerPort"), p.ListenerPort))
		}
		if ports[p.NodePort] {
			errs = append(errs, field.Duplicate(at.Child("nodePort"), p.NodePort))
		}
		listeners[p.ListenerPort], ports[p.NodePort] = true, true
	}
	if len(s.IPFamilies) == 2 && s.IPFamilies[0] == s.IPFamilies[1] {
		errs = append(errs, field.Duplicate(at.Child("ipFamilies").Index(1), s.IPFamilies[1]))
	}
	return errs
}

// checkHostPorts finds ports of a node that two would have.
func checkHostPorts(at *field.Path, ports []v1alpha1.HostPort) (errs field.ErrorList) {
	listeners, hosts := map[int32]bool{}, map[int32]bool{}
	for i, p := range ports {
		at := at.Index(i)
		if listeners[p.ListenerPort] {
			errs = append(errs, field.Duplicate(at.Child("listenerPort"), p.ListenerPort))
		}
		if hosts[p.HostPort] {
			errs = append(errs, field.Duplicate(at.Child("hostPort"), p.HostPort))
		}
		listeners[p.ListenerPort], hosts[p.HostPort] = true, true
	}
	return errs
}

func checkRanges(at *field.Path, ranges []string) (errs field.ErrorList) {
	for i, text := range ranges {
		if _, err := netip.ParsePrefix(text); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), text, "is not a range of addresses such as 10.0.0.0/8"))
		}
	}
	return errs
}

func checkPatch(at *field.Path, p *v1alpha1.Patch) field.ErrorList {
	switch {
	case p.Type == v1alpha1.JSONPatch && !isJSON(p.Value.Raw, '['):
		return field.ErrorList{field.Invalid(at.Child("value"), field.OmitValueType{}, "a JSONPatch must be a list of operations")}
	case p.Type != v1alpha1.JSONPatch && !isJSON(p.Value.Raw, '{'):
		return field.ErrorList{field.Invalid(at.Child("value"), field.OmitValueType{}, "a StrategicMerge patch must be an object")}
	default:
		return nil
	}
}

// isJSON reports whether a text is JSON that begins as an object or a list does.
func isJSON(text []byte, first byte) bool {
	return json.Valid(text) && bytes.TrimLeft(text, " \t\r\n")[0] == first
}

func checkAccessLog(at *field.Path, a *v1alpha1.AccessLog) (errs field.ErrorList) {
	if a.Path != nil && path.Clean(*a.Path) != *a.Path {
		errs = append(errs, field.Invalid(at.Child("path"), *a.Path, "must be the plain path of a file, such as "+path.Clean(*a.Path)))
	}
	if a.OpenTelemetry != nil {
		errs = append(errs, checkHost(at.Child("openTelemetry", "host"), a.OpenTelemetry.Host)...)
	}
	return errs
}

func checkHost(at *field.Path, host string) field.ErrorList {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	if msgs := validation.IsDNS1123Subdomain(host); len(msgs) > 0 {
		return field.ErrorList{field.Invalid(at, host, "is neither an IP address nor a DNS name")}
	}
	return nil
}

func checkBackends(at *field.Path, b *v1alpha1.Backends) (errs field.ErrorList) {
	for i, name := range b.ExternalNames {
		at := at.Child("externalNames").Index(i)
		suffix := strings.TrimPrefix(name, "*.")
		if msgs := validation.IsDNS1123Subdomain(suffix); name != "*" && len(msgs) > 0 {
			errs = append(errs, field.Invalid(at, name, "is neither a DNS name in lower case, nor *. and one, nor *"))
		} else if why := ir.LocalName(suffix); why != "" && name == suffix && name != "*" {
			errs = append(errs, field.Invalid(at, name, "can't be allowed: "+why))
		}
	}
	return append(errs, checkPrivate(at.Child("privateAddresses"), b.PrivateAddresses)...)
}

// checkPrivate checks ranges of private addresses that names may resolve to.
func checkPrivate(at *field.Path, ranges []string) (errs field.ErrorList) {
	for i, text := range ranges {
		at := at.Index(i)
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err != nil || prefix.Masked() != prefix || prefix.Addr().Is4In6():
			errs = append(errs, field.Invalid(at, text, "is not a range of addresses such as 10.1.0.0/16"))
		case slices.ContainsFunc(ir.Unreachable, prefix.Overlaps):
			errs = append(errs, field.Invalid(at, text, "has loopback, link-local or multicast addresses, which can't be allowed"))
		}
	}
	return errs
}

func checkKeySets(at *field.Path, list []v1alpha1.AllowedKeySets) (errs field.ErrorList) {
	for i, allowed := range list {
		at := at.Index(i)
		for j, name := range allowed.Names {
			at := at.Child("names").Index(j)
			suffix := strings.TrimPrefix(name, "*.")
			_, isAddress := netip.ParseAddr(name)
			switch {
			case len(validation.IsDNS1123Subdomain(suffix)) > 0 || isAddress == nil:
				errs = append(errs, field.Invalid(at, name, "is neither a DNS name in lower case, nor *. and one"))
			case suffix != name && ir.LocalName("a."+suffix) != "":
				errs = append(errs, field.Invalid(at, name, "can't be allowed as a whole, since "+ir.LocalName("a."+suffix)+"; list its names one by one"))
			}
		}
		errs = append(errs, checkPrivate(at.Child("addresses"), allowed.Addresses)...)
	}
	return errs
}

func checkHostnames(at *field.Path, list []v1alpha1.AllowedHostnames) (errs field.ErrorList) {
	for i, allowed := range list {
		at := at.Index(i)
		if s := allowed.Namespaces.Selector; s != nil {
			errs = append(errs, metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at.Child("namespaces", "selector"))...)
		}
		for j, name := range allowed.Hostnames {
			if name != "*" && len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) > 0 {
				errs = append(errs, field.Invalid(at.Child("hostnames").Index(j), name, "is neither a DNS name in lower case, nor *. and one, nor *"))
			}
		}
	}
	return errs
}

func checkDuration(at *field.Path, d *gwv1.Duration, least, most time.Duration) field.ErrorList {
	if d == nil {
		return nil
	}
	if v, err := time.ParseDuration(string(*d)); err != nil || v < least || v > most {
		return field.ErrorList{field.Invalid(at, string(*d), fmt.Sprintf("is not a duration from %s to %s", least, most))}
	}
	return nil
}

// checkResources refuses what the API server would refuse of every pod.
func checkResources(at *field.Path, r *corev1.ResourceRequirements) (errs field.ErrorList) {
	for name, limit := range r.Limits {
		if limit.Sign() < 0 {
			errs = append(errs, field.Invalid(at.Child("limits").Key(string(name)), limit.String(), "is negative"))
		}
	}
	for name, request := range r.Requests {
		if request.Sign() < 0 {
			errs = append(errs, field.Invalid(at.Child("requests").Key(string(name)), request.String(), "is negative"))
		}
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(at.Child("requests").Key(string(name)), request.String(), "is more than the limit of "+limit.String()))
		}
	}
	// Maps have no order, messages do.
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// checkAddressHeader checks the header in which proxies say who the client is.
func checkAddressHeader(at *field.Path, name string) field.ErrorList {
	switch lower := strings.ToLower(name); {
	case !ir.IsToken(lower) || len(name) > 64:
		return field.ErrorList{field.Invalid(at, name, "is no name of a header, such as CF-Connecting-IP")}
	case slices.Contains([]string{"host", "cookie", "authorization", "forwarded", "x-forwarded-for"}, lower):
		return field.ErrorList{field.Invalid(at, name, "has no address alone, and must not be taken away from requests; X-Forwarded-For is read without addressHeader")}
	}
	return nil
}
