package parameters

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// checkRedis checks where counts are kept.
func checkRedis(at *field.Path, r *v1alpha1.Redis) field.ErrorList {
	errs := checkHost(at.Child("host"), r.Host)
	if r.SecretRef != nil {
		errs = append(errs, checkObjectName(at.Child("secretRef", "name"), r.SecretRef.Name)...)
	}
	if r.TLS == nil {
		return errs
	}
	if r.TLS.ServerName != nil {
		errs = append(errs, checkHost(at.Child("tls", "serverName"), *r.TLS.ServerName)...)
	}
	if ref := r.TLS.CACertificateRef; ref != nil {
		errs = append(errs, checkObjectName(at.Child("tls", "caCertificateRef", "name"), ref.Name)...)
	}
	return errs
}

func checkObjectName(at *field.Path, name string) field.ErrorList {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return field.ErrorList{field.Invalid(at, name, "is not the name of an object")}
	}
	return nil
}

// checkLimits checks all levels of what counts requests taken together.
func checkLimits(at *field.Path, l *v1alpha1.LimitsService) (errs field.ErrorList) {
	if n := ptr.Deref(l.Replicas, 1); n > 1 && l.Redis == nil {
		errs = append(errs, field.Invalid(at.Child("replicas"), n,
			"needs limits.redis: each replica would count by itself, and let a limit's worth through"))
	}
	if l.Resources != nil {
		errs = append(errs, checkResources(at.Child("resources"), l.Resources)...)
	}
	return errs
}
