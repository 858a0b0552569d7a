package envoy

import "slices"

// Carrying returns the resource with marks of what it brings to a proxy, sorted: whoever has
// the resource in force has what the marks stand for. They are no part of it to a proxy, nor
// of its version. Resources that bring the same may share a list, which costs least.
func (r *Resource) Carrying(marks *[]uint64) *Resource {
	if r == nil || r.carries == marks {
		return r
	}
	out := *r
	out.carries = marks
	return &out
}

// Carries returns the marks of what the resource brings; nil for nothing.
func (r *Resource) Carries() *[]uint64 {
	if r == nil {
		return nil
	}
	return r.carries
}

// CarriesAlike reports whether two resources bring the same.
func (r *Resource) CarriesAlike(o *Resource) bool { return AlikeMarks(r.Carries(), o.Carries()) }

// AlikeMarks reports whether two lists of marks are the same; nil is an empty one.
func AlikeMarks(a, b *[]uint64) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil {
		return (a == nil || len(*a) == 0) && (b == nil || len(*b) == 0)
	}
	return slices.Equal(*a, *b)
}
