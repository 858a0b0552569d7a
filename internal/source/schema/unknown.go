package schema

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// ErrForeign is returned by Identify for kinds that are none of Gatehouse's
// business, such as Deployment: not a mistake, a cluster's manifests have them.
var ErrForeign = errors.New("a kind that Gatehouse does not read")

// UnknownKindError reports a kind or version that can only be a mistake or needs
// a switch: the group is one that Gatehouse reads, the kind isn't, or one of them is
// nearly one of ours.
type UnknownKindError struct {
	Field string // "kind" or "apiVersion"
	Text  string
	meant *row // the kind that may be meant; nil if none is near
}

// Error says what is wrong and what to do.
func (e *UnknownKindError) Error() string { return e.Text }

// forOthers are kinds of groups that Gatehouse reads which are there for other controllers.
var forOthers = map[object.Kind]bool{object.KindOf(kind.MultiCluster, "ServiceExport"): true}

// unknownKind says what is wrong with a group and a kind of which there is no row.
func (v *Validator) unknownKind(group, apiVersion, name string) error {
	custom := slices.Sorted(maps.Keys(v.groups))
	written := group
	var groups []string
	switch {
	case forOthers[object.KindOf(group, name)]:
		return ErrForeign
	case v.groups[group]:
		near := v.nearKind(name, group)
		if of := v.nearKind(name, custom...); near == nil && of != nil {
			return wrongGroup(of, group, name)
		}
		return wrongKind(near, group, name)
	case group != kind.Core:
		groups = v.nearGroups(group)
	case isVersion.MatchString(apiVersion):
		if near := v.nearKind(name, group); near != nil {
			return wrongKind(near, apiVersion, name)
		}
		written, groups = apiVersion, custom
	default: // without a version
		written, groups = apiVersion, v.nearGroups(apiVersion)
	}
	switch near := v.nearKind(name, groups...); {
	case near == nil:
		return ErrForeign
	case near.Kind.Group() == group:
		return wrongKind(near, group, name)
	default:
		return wrongGroup(near, written, name)
	}
}

// isVersion matches an apiVersion of the core group.
var isVersion = regexp.MustCompile(`(?i)^v[0-9]`)

// wrongGroup is the error of an apiVersion of another group than that of the kind that is
// meant.
func wrongGroup(of *row, group, name string) *UnknownKindError {
	meant := of.APIVersion()
	if of.Kind.Name() != name {
		meant = of.Kind.Name() + " of " + meant
	}
	return &UnknownKindError{
		Field: "apiVersion", meant: of,
		Text: fmt.Sprintf("%s has no kind %s that Gatehouse reads; did you mean %s?", shown(group), shown(name), meant),
	}
}

// wrongKind is the error of a kind; meant is nil if none is near.
func wrongKind(meant *row, group, name string) *UnknownKindError {
	e := &UnknownKindError{Field: "kind", Text: fmt.Sprintf("%s is not a kind of %s that Gatehouse reads", shown(name), group)}
	if meant != nil {
		e.meant = meant
		e.Text += "; did you mean " + meant.Kind.Name() + "?"
	}
	return e
}

// nearKind returns the kind of some groups that is meant by a name, or may be by a misspelt
// one; nil if none is near.
func (v *Validator) nearKind(name string, groups ...string) *row {
	var near *row
	nearest := spelling.Nearest(name, func(yield func(string) bool) {
		for _, known := range v.sorted() {
			if known.Name() != name && slices.Contains(groups, known.Group()) && !yield(known.Name()) {
				return
			}
		}
	})
	for _, known := range v.sorted() {
		switch {
		case !slices.Contains(groups, known.Group()):
		case known.Name() == name:
			return v.kinds[known]
		case known.Name() == nearest && near == nil:
			near = v.kinds[known]
		}
	}
	return near
}

// nearGroups returns the groups that may be meant by one that has no kinds of ours: who else
// has a kind of the same name has a group of another name, not nearly the same.
func (v *Validator) nearGroups(written string) []string {
	groups := map[string]bool{}
	for known := range v.kinds {
		groups[known.Group()] = true
	}
	if groups[written] {
		return []string{written}
	}
	delete(groups, kind.Core)
	var near []string
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		switch {
		case strings.HasPrefix(written, group+"."), strings.HasPrefix(group, written+"."), strings.HasSuffix(group, "."+written):
			near = append(near, group)
		}
	}
	if nearest := spelling.Nearest(written, slices.Values(slices.Sorted(maps.Keys(groups)))); nearest != "" && !slices.Contains(near, nearest) {
		near = append(near, nearest)
	}
	if strings.EqualFold(written, "core") {
		near = append(near, kind.Core)
	}
	return near
}

// sorted are the kinds in order.
func (v *Validator) sorted() []object.Kind {
	return slices.SortedFunc(maps.Keys(v.kinds), object.Kind.Compare)
}

// notServed is the error of a version that is not read.
func (k *row) notServed(version string) *UnknownKindError {
	return &UnknownKindError{
		Field: "apiVersion", meant: k,
		Text: fmt.Sprintf("version %s of %s is not served: use %s", shown(version), k.Kind.Name(), k.APIVersion()),
	}
}
