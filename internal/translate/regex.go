package translate

import (
	"errors"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/re2"
)

// Prepare looks at the regular expressions of a route, so that Route finds what there is to
// know of them and takes no time for it. Any number of goroutines may call it; other objects
// have none.
func Prepare(object any) {
	switch o := object.(type) {
	case *gwv1.HTTPRoute:
		for i := range o.Spec.Rules {
			for _, m := range o.Spec.Rules[i].Matches {
				if m.Path != nil && m.Path.Value != nil && isRegex(m.Path.Type) {
					_, _ = re2.Size(*m.Path.Value)
				}
				for j := range m.QueryParams {
					if isRegex(m.QueryParams[j].Type) {
						_, _ = re2.Size(m.QueryParams[j].Value)
					}
				}
				for j := range m.Headers {
					if isRegex(m.Headers[j].Type) {
						_, _ = re2.Size(m.Headers[j].Value)
					}
				}
			}
		}
	case *gwv1.GRPCRoute:
		for i := range o.Spec.Rules {
			for _, m := range o.Spec.Rules[i].Matches {
				for j := range m.Headers {
					if isRegex(m.Headers[j].Type) {
						_, _ = re2.Size(m.Headers[j].Value)
					}
				}
			}
		}
	}
}

func isRegex[T ~string](kind *T) bool {
	return kind != nil && string(*kind) == string(gwv1.PathMatchRegularExpression)
}

// regex checks a regular expression against Envoy's RE2. If it is none, refused names the
// requests that are refused.
func (t *translation) regex(at position, name, pattern string, refused func() string) bool {
	_, err := re2.Size(pattern)
	if err == nil {
		return true
	}
	f := at.field(name)
	if large, ok := errors.AsType[*re2.TooLargeError](err); ok {
		t.refuse(f, condition.RegexTooLarge(f, pattern, large.Size, re2.Most, refused()))
	} else {
		t.refuse(f, condition.InvalidRegex(f, pattern, err, refused()))
	}
	return false
}

// refusedBy says which requests a pattern that can't be compiled refuses: of what they ask
// for, only the beginning is known.
func refusedBy(what, pattern string) string {
	if beginning := re2.Literal(pattern); beginning != "" {
		return condition.RefusedBeginning(what, beginning)
	}
	return condition.RefusedAll()
}
