package parameters

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// checkPaths refuses redirects that would lead to another host, and two rules for one
// listener.
func checkPaths(at *field.Path, p *v1alpha1.Paths) (errs field.ErrorList) {
	errs = checkRedirect(at, p.PathRules)
	ports := map[int32]bool{}
	for i := range p.Listeners {
		l, at := &p.Listeners[i], at.Child("listeners").Index(i)
		if ports[l.ListenerPort] {
			errs = append(errs, field.Duplicate(at.Child("listenerPort"), l.ListenerPort))
		}
		ports[l.ListenerPort] = true
		if l.MergeSlashes != nil || l.EscapedSlashes != nil {
			errs = append(errs, checkRedirect(at, l.PathRules.Or(p.PathRules))...)
		}
	}
	return errs
}

func checkRedirect(at *field.Path, r v1alpha1.PathRules) field.ErrorList {
	if ptr.Deref(r.MergeSlashes, true) || ptr.Deref(r.EscapedSlashes, "") != v1alpha1.RedirectEscapedSlashes {
		return nil
	}
	return field.ErrorList{field.Invalid(at.Child("escapedSlashes"), v1alpha1.RedirectEscapedSlashes,
		"needs mergeSlashes: a redirect to a path that begins with // leads to another host")}
}
