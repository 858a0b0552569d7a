package object

import (
	"cmp"
	"encoding/json"
)

// Key names one object.
type Key struct {
	Kind Kind
	Name
}

// String returns "HTTPRoute ns/name", or "GatewayClass name" for a cluster-scoped
// object: the form that every log line and error uses.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind.Name() + " " + k.Name.Name
	}
	return k.Kind.Name() + " " + k.Name.String()
}

// Compare orders keys by kind, then name.
func (k Key) Compare(o Key) int {
	return cmp.Or(k.Kind.Compare(o.Kind), k.Name.Compare(o.Name))
}

// IsZero reports whether nothing is named.
func (k Key) IsZero() bool { return k == Key{} }

// keyJSON is the form of a key in JSON.
type keyJSON struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// MarshalJSON writes group, kind, namespace and name.
func (k Key) MarshalJSON() ([]byte, error) {
	return json.Marshal(keyJSON{k.Kind.Group(), k.Kind.Name(), k.Namespace, k.Name.Name})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (k *Key) UnmarshalJSON(text []byte) error {
	var v keyJSON
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	*k = Key{KindOf(v.Group, v.Kind), Name{v.Namespace, v.Name}}
	return nil
}
