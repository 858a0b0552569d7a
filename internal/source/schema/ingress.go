package schema

import (
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var pathTypes = []networkingv1.PathType{networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific}

// finishIngress applies the API server's rules for what routing depends on: hosts, paths and backends.
func finishIngress(in *networkingv1.Ingress) (errs field.ErrorList) {
	in.Status = networkingv1.IngressStatus{}
	spec := field.NewPath("spec")
	if in.Spec.DefaultBackend != nil {
		errs = checkIngressBackend(spec.Child("defaultBackend"), in.Spec.DefaultBackend)
	} else if len(in.Spec.Rules) == 0 {
		errs = append(errs, field.Required(spec, "write defaultBackend or rules"))
	}
	for i, rule := range in.Spec.Rules {
		at := spec.Child("rules").Index(i)
		if rule.Host != "" {
			errs = append(errs, messages(at.Child("host"), rule.Host, hostMessages(rule.Host))...)
		}
		if rule.HTTP == nil {
			continue
		}
		for j := range rule.HTTP.Paths {
			errs = append(errs, checkIngressPath(at.Child("http", "paths").Index(j), &rule.HTTP.Paths[j])...)
		}
	}
	for i, t := range in.Spec.TLS {
		for j, host := range t.Hosts {
			errs = append(errs, messages(spec.Child("tls").Index(i).Child("hosts").Index(j), host, hostMessages(host))...)
		}
	}
	return errs
}

func hostMessages(host string) []string {
	if strings.HasPrefix(host, "*") {
		return validation.IsWildcardDNS1123Subdomain(host)
	}
	return validation.IsDNS1123Subdomain(host)
}

func checkIngressPath(at *field.Path, p *networkingv1.HTTPIngressPath) (errs field.ErrorList) {
	switch {
	case p.PathType == nil:
		errs = append(errs, field.Required(at.Child("pathType"), fmt.Sprintf("one of %v", pathTypes)))
	case *p.PathType != networkingv1.PathTypeExact && *p.PathType != networkingv1.PathTypePrefix && *p.PathType != networkingv1.PathTypeImplementationSpecific:
		errs = append(errs, field.NotSupported(at.Child("pathType"), *p.PathType, pathTypes))
	}
	if p.Path != "" && !strings.HasPrefix(p.Path, "/") {
		errs = append(errs, field.Invalid(at.Child("path"), p.Path, "a path begins with /"))
	}
	return append(errs, checkIngressBackend(at.Child("backend"), &p.Backend)...)
}

func checkIngressBackend(at *field.Path, b *networkingv1.IngressBackend) field.ErrorList {
	switch {
	case b.Service == nil && b.Resource == nil:
		return field.ErrorList{field.Required(at, "name a service")}
	case b.Service == nil:
		return nil
	case b.Service.Name == "":
		return field.ErrorList{field.Required(at.Child("service", "name"), "")}
	case (b.Service.Port.Name == "") == (b.Service.Port.Number == 0):
		return field.ErrorList{field.Required(at.Child("service", "port"), "name or number, one of the two")}
	case b.Service.Port.Name != "":
		return messages(at.Child("service", "port", "name"), b.Service.Port.Name, validation.IsValidPortName(b.Service.Port.Name))
	}
	return messages(at.Child("service", "port", "number"), b.Service.Port.Number, validation.IsValidPortNum(int(b.Service.Port.Number)))
}
