package flow

import (
	"maps"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestSetIsAMap protects the hash table: it agrees with a Go map under any
// sequence of changes, hashes that collide included.
func TestSetIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s set[int, *cell[int, int]]
		want := map[int]*cell[int, int]{}
		spread := uint32(rapid.SampledFrom([]int{1, 3, 1 << 20}).Draw(t, "spread"))
		for range rapid.IntRange(0, 200).Draw(t, "changes") {
			k := rapid.IntRange(0, 60).Draw(t, "key")
			h := uint32(k) % spread * 7
			c := s.get(k, h)
			if c != want[k] {
				t.Fatalf("key %d: got %v, want %v", k, c, want[k])
			}
			if c != nil {
				slot, found, ok := s.find(&c.watch)
				if !ok || found != c {
					t.Fatalf("key %d: not found by its watch", k)
				}
				s.cut(slot)
				delete(want, k)
				if _, _, ok := s.find(&c.watch); ok {
					t.Fatalf("key %d: found after it was cut", k)
				}
			} else {
				c = &cell[int, int]{hash: h, key: k}
				s.put(c)
				want[k] = c
			}
		}
		got := map[int]*cell[int, int]{}
		for _, c := range s.slots {
			if c != nil {
				got[c.key] = c
			}
		}
		if !maps.Equal(got, want) || s.n != len(want) {
			t.Fatalf("got %d nodes %v, want %v", s.n, got, want)
		}
		if len(s.slots) > smallest && len(s.slots) > 8*s.n {
			t.Fatalf("%d slots for %d nodes", len(s.slots), s.n)
		}
	})
}

// cellOf and bucketOf take a watch for what it is the first field of.
func TestWatchIsTheFirstField(t *testing.T) {
	var c cell[string, int]
	var b bucket[int, string, int]
	if unsafe.Offsetof(c.watch) != 0 || unsafe.Offsetof(b.watch) != 0 {
		t.Error("a watch stands behind something else")
	}
	if cellOf[string, int](&c.watch) != &c || bucketOf[int, string, int](&b.watch) != &b {
		t.Error("a watch leads to something else")
	}
}
