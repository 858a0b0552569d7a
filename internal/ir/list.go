package ir

import (
	"encoding/json"
	"iter"
	"slices"
	"unique"
)

// List is a list that can be compared by == and be part of a map's key: two lists are
// equal exactly if they hold the same values in the same order. It takes the room of
// one pointer. The zero List is empty.
type List[T comparable] struct{ last unique.Handle[link[T]] }

// link is a value of a list and the values before it.
type link[T comparable] struct {
	before List[T]
	value  T
}

// ListOf returns the list of some values.
func ListOf[T comparable](values ...T) List[T] {
	var l List[T]
	for _, v := range values {
		l = List[T]{unique.Make(link[T]{l, v})}
	}
	return l
}

// All yields the values in their order.
func (l List[T]) All() iter.Seq[T] { return slices.Values(l.Slice()) }

// Slice returns the values in a slice of the caller's own; nil for none.
func (l List[T]) Slice() []T {
	var out []T
	for ; l != (List[T]{}); l = l.last.Value().before {
		out = append(out, l.last.Value().value)
	}
	slices.Reverse(out)
	return out
}

// Equal reports whether two lists are the same.
func (l List[T]) Equal(o List[T]) bool { return l == o }

// MarshalJSON writes the list as an array.
func (l List[T]) MarshalJSON() ([]byte, error) { return json.Marshal(l.Slice()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (l *List[T]) UnmarshalJSON(text []byte) error {
	var values []T
	err := json.Unmarshal(text, &values)
	*l = ListOf(values...)
	return err
}
