package kube

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// reads reports whether objects of a namespace are read. What has no namespace
// always is. The caller holds the lock.
func (s *Source) reads(namespace string) bool {
	switch {
	case namespace == "":
		return true
	case len(s.opts.Namespaces) > 0:
		return slices.Contains(s.opts.Namespaces, namespace)
	case s.opts.Selector != nil:
		return s.selected[namespace]
	default:
		return true
	}
}

// selectNamespace notes whether the selector matches a namespace now, and brings in
// its objects or takes them away. The caller holds the lock.
func (s *Source) selectNamespace(namespace string, matches bool) {
	if s.selected[namespace] == matches {
		return
	}
	for _, w := range s.watched {
		if w.kind.Scope == kind.ClusterScoped || w.kind.Reading == kind.ByName {
			continue
		}
		for n, o := range w.objects {
			switch {
			case n.Namespace != namespace:
			case matches:
				s.put(w.kind.KeyOf(o), o)
			default:
				s.put(w.kind.KeyOf(o), nil)
			}
		}
	}
	if matches {
		s.selected[namespace] = true
	} else {
		delete(s.selected, namespace)
	}
	for k := range s.contents {
		if k.Namespace == namespace {
			s.expire(k)
		}
	}
}
