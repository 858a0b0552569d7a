package ir

import (
	"cmp"
	"strings"
	"unique"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TableKey names a route table: the set of hosts that one HTTP connection manager chooses
// from. It is a handle, because every host of the table has it in its key.
type TableKey struct{ handle unique.Handle[keyedTable] }

type keyedTable struct {
	gateway object.Name
	table   string
}

// TableOf names a table of a Gateway, such as http-80, or tls-443-_.example.com.
func TableOf(gateway object.Name, table string) TableKey {
	return TableKey{unique.Make(keyedTable{gateway, table})}
}

func (k TableKey) value() keyedTable {
	if k == (TableKey{}) {
		return keyedTable{}
	}
	return k.handle.Value()
}

// Gateway is the one whose table it is.
func (k TableKey) Gateway() object.Name { return k.value().gateway }

// Table is its name within the Gateway.
func (k TableKey) Table() string { return k.value().table }

// String returns ns/name/table.
func (k TableKey) String() string { return k.Gateway().String() + "/" + k.Table() }

// Compare orders keys by gateway, then table.
func (k TableKey) Compare(o TableKey) int {
	if k == o {
		return 0
	}
	a, b := k.value(), o.value()
	return cmp.Or(a.gateway.Compare(b.gateway), strings.Compare(a.table, b.table))
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
