package object

import (
	"cmp"
	"strings"
)

// Name is the name of an object, in its namespace.
type Name struct {
	Namespace string `json:"namespace,omitempty"` // empty for kinds that are cluster-scoped
	Name      string `json:"name"`
}

// String returns ns/name.
func (n Name) String() string { return n.Namespace + "/" + n.Name }

// ParseName reads the name of an object in a namespace, ns/name, and reports whether the
// text is one. It is for text that comes from outside this process: inside, a Name is
// passed on.
func ParseName(text string) (Name, bool) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return Name{}, false
	}
	return Name{Namespace: namespace, Name: name}, true
}

// Compare orders names by namespace, then name.
func (n Name) Compare(o Name) int {
	return cmp.Or(strings.Compare(n.Namespace, o.Namespace), strings.Compare(n.Name, o.Name))
}

// sharedFleet begins the names of fleets that the Gateways of a class share. No object of Kubernetes
// can have a name with it.
const sharedFleet = "class_"

// SharedFleet names the fleet that the Gateways of a class share. It is in the namespace of the
// class's parameters.
func SharedFleet(namespace, class string) Name { return Name{namespace, sharedFleet + class} }

// SharedBy returns the class whose Gateways share the fleet of this name; false for a fleet that has its
// Gateway's name.
func (n Name) SharedBy() (class string, ok bool) { return strings.CutPrefix(n.Name, sharedFleet) }

// IsZero reports whether nothing is named.
func (n Name) IsZero() bool { return n == Name{} }
