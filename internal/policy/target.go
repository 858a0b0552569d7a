package policy

import (
	"cmp"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Target is what a policy is attached to: an object, or a section of one.
type Target struct {
	object.Key
	// Section is the name of a listener of a Gateway or a ListenerSet, of a rule of a
	// route, or of a port of a Service; empty for the whole object.
	Section string
}

// String names the target in messages: "Service ns/name", "port http of Service ns/name".
func (t Target) String() string {
	if t.Section == "" {
		return t.Key.String()
	}
	return SectionWord(t.Kind) + " " + t.Section + " of " + t.Key.String()
}

// Compare orders targets by object, then section.
func (t Target) Compare(o Target) int {
	return cmp.Or(t.Key.Compare(o.Key), strings.Compare(t.Section, o.Section))
}

// SectionWord is what the sections of objects of a kind are called.
func SectionWord(of object.Kind) string {
	switch of {
	case kind.Gateway, kind.ListenerSet:
		return "listener"
	case kind.Service, kind.ServiceImport:
		return "port"
	default:
		return "rule"
	}
}
