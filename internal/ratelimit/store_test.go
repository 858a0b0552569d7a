package ratelimit

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse/internal/ratelimit/descriptor"
)

// hit is of a limit that has one count.
func hit(name string, limit uint32, window time.Duration, n uint32) Hit {
	return hitOf(name, name, limit, window, n, Enforced)
}

func hitOf(limit, count string, rate uint32, window time.Duration, n uint32, mode Mode) Hit {
	return Hit{
		Limit: keyOf([]byte(limit)), Count: keyOf([]byte(count)),
		Rate: descriptor.Rate{Limit: rate, Window: window}, N: n, Mode: mode,
	}
}

func take(t testing.TB, s Store, hits ...Hit) (bool, []Verdict) {
	t.Helper()
	verdicts := make([]Verdict, len(hits))
	refused, err := s.Take(t.Context(), hits, verdicts)
	if err != nil {
		t.Fatal(err)
	}
	return refused, verdicts
}

// stores runs a test with each kind of store.
func stores(t *testing.T, test func(t *testing.T, s Store)) {
	t.Run("memory", func(t *testing.T) {
		s := NewMemory()
		defer s.Close()
		test(t, s)
	})
	t.Run("redis", func(t *testing.T) {
		s := startRedis(t).store(t, gatewayName)
		defer s.Close()
		test(t, s)
	})
}

// naive is what the stores must do, without expiry and without bounds.
type naive map[Key]uint64

func (n naive) take(hits []Hit) (refused bool, over []bool) {
	counts, owed := maps.Clone(n), naive{}
	for _, h := range hits {
		have, limit := counts[h.Count], uint64(h.Rate.Limit)
		isOver := h.Mode != Charged && (h.N == 0 && have >= limit || h.N > 0 && have+uint64(h.N) > limit)
		over = append(over, isOver)
		if isOver {
			refused = refused || h.Mode == Enforced
			continue
		}
		if h.Mode == Charged {
			owed[h.Count] += uint64(h.N)
		}
		counts[h.Count] = min(have+uint64(h.N), 1<<32-1)
	}
	if refused {
		counts = naive{}
		for k, v := range owed {
			counts[k] = min(n[k]+v, 1<<32-1)
		}
	}
	maps.Copy(n, counts)
	return refused, over
}

// Random requests are judged as the model judges them: all or nothing, shadowed ones, looks,
// charges, and two hits of one count.
func TestStoresAgainstModel(t *testing.T) {
	stores(t, func(t *testing.T, s Store) {
		histories := 0
		rapid.Check(t, func(t *rapid.T) {
			histories++ // counts of their own
			model := naive{}
			for range rapid.IntRange(1, 12).Draw(t, "requests") {
				hits := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Hit {
					limit := rapid.IntRange(0, 2).Draw(t, "limit")
					count := rapid.IntRange(0, 1).Draw(t, "count")
					n := rapid.SampledFrom([]uint32{0, 1, 1, 1, 2, 5, MaxHits}).Draw(t, "n")
					mode := Mode(rapid.IntRange(0, 2).Draw(t, "mode"))
					name := fmt.Sprint(histories, "/", limit)
					return hitOf(name, fmt.Sprint(name, "/", count), uint32(3*limit+2), time.Hour, n, mode)
				}), 1, 4).Draw(t, "hits")
				verdicts := make([]Verdict, len(hits))
				refused, err := s.Take(t.Context(), hits, verdicts)
				if err != nil {
					t.Fatal(err)
				}
				wantRefused, wantOver := model.take(hits)
				if refused != wantRefused {
					t.Fatalf("refused is %v, not %v", refused, wantRefused)
				}
				last := map[Key]int{}
				for i, h := range hits {
					last[h.Count] = i
					if verdicts[i].Over != wantOver[i] {
						t.Fatalf("hit %d is over: %v, not %v", i, verdicts[i].Over, wantOver[i])
					}
				}
				for k, i := range last {
					if got, want := uint64(verdicts[i].Count), model[k]; got != want && !(refused && len(last) < len(hits)) {
						t.Fatalf("the count of hit %d is %d, not %d", i, got, want)
					}
				}
			}
		})
	})
}

// However many ask at once, as many are let through as the limits permit, and a request that
// one limit refuses uses up nothing of another.
func TestStoresAreExactUnderLoad(t *testing.T) {
	stores(t, func(t *testing.T, s Store) {
		var passed, narrow atomic.Int64
		var wg sync.WaitGroup
		for g := range 32 {
			wg.Go(func() {
				for i := range 100 {
					hits := []Hit{hit("wide", 1000, time.Hour, 1)}
					if (g+i)%2 == 0 {
						hits = append(hits, hit("narrow", 100, time.Hour, 1))
					}
					refused, err := s.Take(t.Context(), hits, make([]Verdict, len(hits)))
					if err != nil {
						t.Error(err)
						return
					}
					if !refused {
						passed.Add(1)
						narrow.Add(int64(len(hits) - 1))
					}
				}
			})
		}
		wg.Wait()
		if passed.Load() != 1000 || narrow.Load() != 100 {
			t.Errorf("%d and %d were let through, not 1000 and 100", passed.Load(), narrow.Load())
		}
		_, v := take(t, s, hit("wide", 1000, time.Hour, 0), hit("narrow", 100, time.Hour, 0))
		if v[0].Count != 1000 || v[1].Count != 100 {
			t.Errorf("counts %d and %d", v[0].Count, v[1].Count)
		}
	})
}

// A window is fixed from its first hit, whatever comes in it. The next one is whole.
func TestStoresWindow(t *testing.T) {
	const window = 300 * time.Millisecond
	const slack = 10 * time.Millisecond // Redis has a clock of its own, in milliseconds
	run := func(t *testing.T, s Store) {
		for range 2 {
			began := time.Now()
			var begun time.Time
			for i := range 2 {
				if refused, _ := take(t, s, hit("a", 2, window, 1)); refused {
					t.Fatalf("hit %d of a window is refused", i)
				}
				if i == 0 {
					begun = time.Now() // at the latest
				}
			}
			for {
				asked := time.Now()
				refused, v := take(t, s, hit("a", 2, window, 0))
				if v[0].Reset < 0 || v[0].Reset > window {
					t.Fatalf("the window ends in %s", v[0].Reset)
				}
				if !refused {
					break
				}
				if late := asked.Sub(begun); late > window+slack {
					t.Fatalf("the window has not ended after %s", late)
				}
				time.Sleep(5 * time.Millisecond)
			}
			if took := time.Since(began); took < window {
				t.Errorf("the window has ended after %s", took)
			}
		}
	}
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := NewMemory()
			defer s.Close()
			run(t, s)
		})
	})
	t.Run("redis", func(t *testing.T) {
		s := startRedis(t).store(t, gatewayName)
		defer s.Close()
		run(t, s)
	})
}

// A limit whose window is made shorter refuses nobody for longer than that, though a count
// began under the old one; and asking again doesn't put the end off.
func TestStoresShorterWindow(t *testing.T) {
	stores(t, func(t *testing.T, s Store) {
		take(t, s, hit("a", 1, time.Hour, 1))
		const window = 100 * time.Millisecond
		began := time.Now()
		for {
			if refused, _ := take(t, s, hit("a", 1, window, 1)); !refused {
				break
			}
			if time.Since(began) > 100*window {
				t.Fatal("still refused")
			}
			time.Sleep(5 * time.Millisecond)
		}
		if took := time.Since(began); took < window {
			t.Errorf("let through after %s", took)
		}
	})
}

// A charge goes beyond the limit, and stays at the highest number.
func TestStoresCharge(t *testing.T) {
	stores(t, func(t *testing.T, s Store) {
		for i, want := range []uint32{MaxHits, 2 * MaxHits, 3 * MaxHits, 4 * MaxHits, 1<<32 - 1, 1<<32 - 1} {
			refused, v := take(t, s, hitOf("a", "a", 10, time.Hour, MaxHits, Charged))
			if refused || v[0].Over || v[0].Count != want {
				t.Errorf("charge %d: refused %v, %+v, not a count of %d", i, refused, v[0], want)
			}
		}
		if refused, _ := take(t, s, hit("a", 10, time.Hour, 0)); !refused {
			t.Error("a look is let through after charges beyond the limit")
		}
	})
}
