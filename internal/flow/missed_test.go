package flow

import (
	"cmp"
	"slices"
	"testing"
)

// What is missed is what somebody has begun to look for since the last call and is not there.
func TestMissed(t *testing.T) {
	e := New()
	wishes := NewInput[string, string](e, "wishes")
	things := NewInput[string, string](e, "things")
	byKind := NewIndex(things, func(_, kind string, yield func(string)) { yield(kind) }, cmp.Compare[string])
	things.NoteMissed()
	byKind.NoteMissed()
	Map("granted", wishes, func(c *Ctx, k, wish string, emit func(string, int)) {
		if _, ok := Get(c, things, wish); !ok {
			emit(k, Select(c, byKind, wish).Len())
		}
	})
	for _, step := range []struct {
		what            string
		change          func(*Tx)
		things, ofKinds []string
	}{
		{"nothing is there", func(tx *Tx) { wishes.Set(tx, "a", "moon"); wishes.Set(tx, "b", "moon") }, []string{"moon"}, []string{"moon"}},
		{"it is looked for already", func(tx *Tx) { wishes.Set(tx, "c", "moon") }, nil, nil},
		{"there is one of the kind", func(tx *Tx) { things.Set(tx, "luna", "satellite"); wishes.Set(tx, "c", "satellite") }, []string{"satellite"}, nil},
		{"it is there", func(tx *Tx) { things.Set(tx, "salt", "food"); wishes.Set(tx, "c", "salt") }, nil, nil},
		{"it goes", func(tx *Tx) { things.Delete(tx, "salt") }, nil, []string{"salt"}},
		{"nobody looks for it any more", func(tx *Tx) { wishes.Delete(tx, "a"); wishes.Delete(tx, "b") }, nil, nil},
		{"it is looked for again", func(tx *Tx) { wishes.Set(tx, "a", "moon") }, []string{"moon"}, []string{"moon"}},
	} {
		e.Update(step.change)
		if got := slices.Sorted(slices.Values(things.Missed())); !slices.Equal(got, step.things) {
			t.Errorf("%s: missed %q, want %q", step.what, got, step.things)
		}
		if got := slices.Sorted(slices.Values(byKind.Missed())); !slices.Equal(got, step.ofKinds) {
			t.Errorf("%s: missed of kinds %q, want %q", step.what, got, step.ofKinds)
		}
	}
	e.Update(func(tx *Tx) { wishes.Set(tx, "d", "unicorn") })
	e.Update(func(tx *Tx) { wishes.Delete(tx, "d") })
	if got := things.Missed(); got != nil {
		t.Errorf("%q is missed, which nobody looks for", got)
	}
}
