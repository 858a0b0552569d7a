package condition

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ReasonWaiting is the reason of what is wrong with an object only because something else is
// wrong, which is told where it is: a mistake in a file, or a listener that can't be served.
const ReasonWaiting = "Waiting"

// Missing is an object that a reference names and that does not exist, with what is known of
// why. What tells of other objects than that is filled in only where the reader may know them.
type Missing struct {
	Kind, Namespace, Name string
	// At is where a file has the object with a mistake, as file:line; empty if none does.
	At string
	// Near is the name of one in the same namespace that is written almost like it.
	Near string
	// Elsewhere is another namespace, which has one of that name, and Permit is what must be
	// written, as YAML, for the reference to be permitted; empty if it is.
	Elsewhere, Permit string
	// NotRead says that nobody knows whether it exists: the controller doesn't read its namespace.
	NotRead bool
}

// notRead says that the controller doesn't read a namespace.
func notRead(namespace string) string {
	return fmt.Sprintf("the configuration of the controller (sources[].kubernetes) leaves namespace %s out; add it there", namespace)
}

func (m Missing) String() string {
	if m.Namespace == "" {
		return m.Kind + " " + m.Name
	}
	return m.Kind + " " + m.Namespace + "/" + m.Name
}

// reason is the reason of a condition that says that the object is missing.
func (m Missing) reason(otherwise string) string {
	if m.At != "" {
		return ReasonWaiting
	}
	return otherwise
}

// text says that the object is missing, and what to do with the field that names it.
func (m Missing) text(field string) string {
	switch {
	case m.NotRead:
		return fmt.Sprintf("%s can't be looked at, since %s, or correct %s", m, notRead(m.Namespace), field)
	case m.At != "":
		return fmt.Sprintf("%s can't be used until the mistake at %s is corrected", m, m.At)
	case m.Near != "":
		return fmt.Sprintf("%s does not exist; did you mean %q? Correct %s, or create it", m, m.Near, field)
	case m.Elsewhere != "":
		text := fmt.Sprintf("%s does not exist, but %s/%s does; write {name: %[3]s, namespace: %[2]s} in %[4]s", m, m.Elsewhere, m.Name, field)
		if m.Permit != "" {
			text += ", and permit it there with " + m.Permit
		}
		return text
	default:
		return fmt.Sprintf("%s does not exist; create it or correct %s", m, field)
	}
}

// Grant is what a ReferenceGrant says that permits a reference into another namespace.
type Grant struct {
	FromGroup       string // empty for the Gateway API's
	FromKind, From  string // of what refers, and its namespace
	Group, Kind     string // of what is referred to
	Namespace, Name string
	// Broken is a ReferenceGrant there that a file has with a mistake, at BrokenAt, so that it
	// permits nothing: it may be the one; empty if there is none.
	Broken, BrokenAt string
	// NotRead says that the controller doesn't read that namespace, so that no ReferenceGrant there counts.
	NotRead bool
}

// YAML is the ReferenceGrant, on one line.
func (g Grant) YAML() string {
	name := strings.ToLower(fmt.Sprintf("%s-%s-to-%s-%s", g.From, g.FromKind, g.Kind, g.Name)) // another for each pair
	return fmt.Sprintf("{apiVersion: %s, kind: ReferenceGrant, metadata: {name: %s, namespace: %s}, spec: {from: [{group: %s, kind: %s, namespace: %s}], to: [{group: %s, kind: %s, name: %s}]}}",
		gwv1.GroupVersion, scalar(name), g.Namespace, cmp.Or(g.FromGroup, gwv1.GroupName), g.FromKind, g.From, cmp.Or(g.Group, `""`), g.Kind, scalar(g.Name))
}

// scalar writes a name in YAML. The schema takes any text as the name in a reference: whoever
// pastes the grant must not permit more than what one name says.
func scalar(name string) string {
	const plain = "abcdefghijklmnopqrstuvwxyz0123456789-."
	if strings.Trim(strings.ToLower(name), plain) == "" {
		return name
	}
	return strconv.QuoteToASCII(name)
}

// refused says that a reference is not permitted, and by what it would be. Subject names what
// it leads to.
func (g Grant) refused(subject string) string {
	if g.NotRead {
		return fmt.Sprintf("%s can't be used, nor a ReferenceGrant for it, since %s", subject, notRead(g.Namespace))
	}
	if g.Broken != "" {
		return fmt.Sprintf("%s may not be used from namespace %s, and ReferenceGrant %s is broken, so that it permits nothing: correct the mistake at %s, and see that it is from %[5]s of namespace %[2]s to %[6]ss",
			subject, g.From, g.Broken, g.BrokenAt, g.fromKinds(), g.Kind)
	}
	return fmt.Sprintf("%s may not be used from namespace %s; create a ReferenceGrant in namespace %s from %[4]s of namespace %[2]s to %[5]ss: %[6]s",
		subject, g.From, g.Namespace, g.fromKinds(), g.Kind, g.YAML())
}

// fromKinds is the plural of what refers.
func (g Grant) fromKinds() string {
	if stem, ok := strings.CutSuffix(g.FromKind, "cy"); ok { // not of a Gateway
		return stem + "cies"
	}
	return g.FromKind + "s"
}

// AllowRoutes is what a listener says, as YAML on one line, that lets routes of a namespace
// attach.
func AllowRoutes(namespace string) string {
	return fmt.Sprintf("allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: %s}}}}", namespace)
}
