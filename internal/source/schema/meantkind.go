package schema

import (
	"errors"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// meantKind sets the kind that is meant, and its version; false if none can be told.
func (v *Validator) meantKind(m *Meant) bool {
	apiVersion, noVersion := requiredString(m.Content, nil, "apiVersion")
	name, noKind := requiredString(m.Content, nil, "kind")
	switch {
	case noVersion == nil && noKind == nil:
		return v.knownKind(m, apiVersion, name)
	case noKind == nil:
		m.Kinds = v.kindsNear(name)
		var groups []string
		for _, known := range v.sorted() {
			groups = append(groups, known.Group())
		}
		fault := asFault(noVersion)
		if m.row = v.nearKind(name, groups...); m.row != nil {
			fault.Detail = strings.TrimPrefix(fault.Detail+"; for kind "+m.row.Kind.Name()+" it is "+m.row.APIVersion(), "; ")
			if m.row.Kind.Name() != name {
				m.Faults = append(m.Faults, asFault(wrongKind(m.row, m.row.APIVersion(), name)))
			}
		}
		m.Faults = append(m.Faults, fault)
	default:
		m.Faults = append(m.Faults, asFault(noKind))
		if noVersion != nil {
			m.Faults = append(m.Faults, asFault(noVersion))
		} else if of := v.nearGroups(groupOf(apiVersion)); len(of) == 0 || of[0] == kind.Core {
			return false
		}
		m.row = v.kinds[likely(m.Content)]
	}
	return m.row != nil && v.newest(m)
}

// knownKind is meantKind of a document that has both an apiVersion and a kind.
func (v *Validator) knownKind(m *Meant, apiVersion, name string) bool {
	row, version, err := v.lookup(apiVersion, name)
	if err == nil {
		m.row, m.version, m.Kinds = row, version, []object.Kind{row.Kind}
		return true
	}
	unknown := new(UnknownKindError)
	if !errors.As(err, &unknown) {
		return false
	}
	m.Faults = append(m.Faults, asFault(err))
	m.Kinds = v.kindsNear(name)
	switch {
	case unknown.decodes:
		m.row = unknown.meant
	case unknown.meant == nil:
		m.row = v.kinds[likely(m.Content)]
	}
	return m.row != nil && v.newest(m)
}

// newest sets the newest version that can be read of the kind; false if there is none.
func (v *Validator) newest(m *Meant) bool {
	for _, version := range m.row.Versions {
		if _, err := v.served(m.row.Kind.Group(), version.Name, "", m.row.Kind.Name()); err == nil {
			m.version = version.Name
			return true
		}
	}
	return false
}

// likely is the kind of route that a document without a kind seems to be; zero for something
// else.
func likely(content map[string]any) object.Kind {
	spec := merged(content["spec"])
	if spec["parentRefs"] == nil {
		return object.Kind{}
	}
	rules, _ := spec["rules"].([]any)
	for _, rule := range rules {
		fields, _ := rule.(map[string]any)
		matches, _ := fields["matches"].([]any)
		for _, match := range matches {
			fields, _ := match.(map[string]any)
			if _, ok := fields["method"].(map[string]any); ok {
				return kind.GRPCRoute
			}
		}
	}
	return kind.HTTPRoute
}

// groupOf is the group of an apiVersion, also of one without a version.
func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok && isVersion.MatchString(apiVersion) {
		return kind.Core
	}
	return group
}
