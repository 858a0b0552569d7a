package ir

import (
	"cmp"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TableKey names a route table: the set of hosts that one HTTP connection
// manager chooses from.
type TableKey struct {
	Gateway object.Name
	Table   string // such as http-80, or tls-443-_.example.com
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
