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

// ParseName reads what String returns.
func ParseName(text string) Name {
	namespace, name, _ := strings.Cut(text, "/")
	return Name{Namespace: namespace, Name: name}
}

// Compare orders names by namespace, then name.
func (n Name) Compare(o Name) int {
	return cmp.Or(strings.Compare(n.Namespace, o.Namespace), strings.Compare(n.Name, o.Name))
}

// IsZero reports whether nothing is named.
func (n Name) IsZero() bool { return n == Name{} }
