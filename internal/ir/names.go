package ir

import (
	"cmp"
	"strings"
)

// Name is a namespaced name.
type Name struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns ns/name.
func (n Name) String() string { return n.Namespace + "/" + n.Name }

// Compare orders names by namespace, then name.
func (n Name) Compare(o Name) int {
	return cmp.Or(strings.Compare(n.Namespace, o.Namespace), strings.Compare(n.Name, o.Name))
}

// TableKey names a route table: the set of hosts that one HTTP connection
// manager chooses from.
type TableKey struct {
	Gateway Name
	Table   string // such as http-80, or tls-443-*.example.com
}

// String returns ns/name/table.
func (k TableKey) String() string { return k.Gateway.String() + "/" + k.Table }

// Compare orders keys by gateway, then table.
func (k TableKey) Compare(o TableKey) int {
	return cmp.Or(k.Gateway.Compare(o.Gateway), strings.Compare(k.Table, o.Table))
}

// HostKey names one host of a route table.
type HostKey struct {
	TableKey
	Domain string // exact, *.suffix, or * for everything else
}

// String returns ns/name/table/domain.
func (k HostKey) String() string { return k.TableKey.String() + "/" + k.Domain }

// Compare orders keys by table, then domain.
func (k HostKey) Compare(o HostKey) int {
	return cmp.Or(k.TableKey.Compare(o.TableKey), strings.Compare(k.Domain, o.Domain))
}
