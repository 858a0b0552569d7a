package object

import (
	"cmp"
	"strings"
	"unique"
)

// Kind is a kind of objects. The zero Kind is none. It takes the room of one pointer,
// since keys are many.
type Kind struct{ handle unique.Handle[groupKind] }

type groupKind struct{ group, name string }

// KindOf returns the kind of an API group, which is empty for the core group.
func KindOf(group, name string) Kind {
	if group == "" && name == "" {
		return Kind{}
	}
	return Kind{unique.Make(groupKind{group, name})}
}

func (k Kind) value() groupKind {
	if k == (Kind{}) {
		return groupKind{}
	}
	return k.handle.Value()
}

// Group returns the API group; empty for the core group.
func (k Kind) Group() string { return k.value().group }

// Name returns the kind's name without its group, such as HTTPRoute.
func (k Kind) Name() string { return k.value().name }

// String returns the kind's name: people know the kinds that are read by that.
func (k Kind) String() string { return k.Name() }

// Equal reports whether two kinds are one.
func (k Kind) Equal(o Kind) bool { return k == o }

// MarshalText prints the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.Name()), nil }

// UnmarshalText reads what MarshalText prints: a kind without its group.
func (k *Kind) UnmarshalText(text []byte) error {
	*k = KindOf("", string(text))
	return nil
}

// Compare orders kinds by name, then group.
func (k Kind) Compare(o Kind) int {
	if k == o {
		return 0
	}
	a, b := k.value(), o.value()
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.group, b.group))
}
