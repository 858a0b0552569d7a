package ratelimit

import (
	"encoding/binary"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/ratelimit/descriptor"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// numbered is a hit of the count i of a limit.
func numbered(limit string, i uint64, window time.Duration) Hit {
	return Hit{
		Limit: keyOf([]byte(limit)), Count: keyOf(binary.LittleEndian.AppendUint64([]byte(limit), i)),
		Rate: descriptor.Rate{Limit: 1, Window: window}, N: 1,
	}
}

// A limit with more values than there is room for costs others nothing, and loses those
// counts that were used least recently.
func TestMemoryEvicts(t *testing.T) {
	m := newMemory(100, 100)
	defer m.Close()
	take(t, m, numbered("quiet", 0, time.Hour))
	take(t, m, numbered("loud", 0, time.Hour))
	for i := range uint64(1000) {
		take(t, m, numbered("loud", i+1, time.Hour))
		if refused, _ := take(t, m, numbered("loud", 0, time.Hour)); !refused {
			t.Fatalf("the count that is in use was lost after %d others", i+1)
		}
	}
	if refused, _ := take(t, m, numbered("quiet", 0, time.Hour)); !refused {
		t.Error("a limit with one count has lost it to one with a thousand")
	}
	if n, evicted := m.size(); n != 100 || evicted != 902 {
		t.Errorf("%d counts are held, %d evicted", n, evicted)
	}
}

func TestMemoryBoundOfALimit(t *testing.T) {
	m := newMemory(100, 1)
	defer m.Close()
	for i := range uint64(10) {
		take(t, m, numbered("a", i, time.Hour))
		take(t, m, numbered("b", i, time.Hour))
	}
	if n, evicted := m.size(); n != 2 || evicted != 18 {
		t.Errorf("%d counts are held, %d evicted", n, evicted)
	}
}

// What has ended goes, though nobody asks for it.
func TestMemoryLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		defer m.Close()
		for i := range uint64(3 * sweepBatch) {
			take(t, m, numbered("short", i, time.Minute))
		}
		take(t, m, numbered("long", 0, time.Hour))
		time.Sleep(time.Minute + 2*sweepInterval)
		synctest.Wait()
		if n, evicted := m.size(); n != 1 || evicted != 0 {
			t.Errorf("%d counts are held, not that of the hour alone; %d evicted", n, evicted)
		}
		if len(m.limits) != 1 {
			t.Errorf("%d limits are held", len(m.limits))
		}
	})
}

// A request that is refused begins no window, and keeps none.
func TestMemoryRefusedKeepsNothing(t *testing.T) {
	m := NewMemory()
	defer m.Close()
	take(t, m, hit("full", 1, time.Hour, 1))
	take(t, m, hit("new", 5, time.Hour, 1), hit("full", 1, time.Hour, 1), hit("big", 5, time.Hour, 6))
	if n, _ := m.size(); n != 1 {
		t.Errorf("%d counts are held, not 1", n)
	}
}

// The figures of doc.go: what a million values of a counter take, and as many of three.
func TestMemoryOfAMillionCounts(t *testing.T) {
	slow.Skip(t)
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	for _, c := range []struct {
		limits []string
		counts int
		most   uint64 // MB
	}{
		{[]string{"a"}, maxCountsPerLimit, 45},
		{[]string{"a", "b", "c"}, maxCounts, 100},
	} {
		before := heap()
		m := NewMemory()
		defer m.Close()
		var v [1]Verdict
		for i := range uint64(1_000_000 * len(c.limits)) {
			h := [1]Hit{numbered(c.limits[i%uint64(len(c.limits))], i, time.Hour)}
			if _, err := m.Take(t.Context(), h[:], v[:]); err != nil {
				t.Fatal(err)
			}
		}
		used := heap() - before
		n, _ := m.size()
		t.Logf("%d counts in %d MB, %d bytes each", n, used/1e6, used/uint64(n))
		if n != c.counts || used > c.most*1e6 {
			t.Errorf("%d counts take %d MB: want %d in %d", n, used/1e6, c.counts, c.most)
		}
		runtime.KeepAlive(m)
	}
}
