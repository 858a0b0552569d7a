package flow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// network is a small pipeline of every kind of table, shaped like the real one:
// routes name services and groups; services may be missing. Its names are few, so
// that random histories meet every coincidence.
type network struct {
	engine   *Engine
	routes   *Input[string, route]
	services *Input[string, int]
	slices   *Input[string, string] // the service that each belongs to
	derived  []func(c *Ctx) map[string]string
	weights  []func() weight
}

type route struct{ group, service string }

// hostile is a port that the functions of the network can't bear.
const hostile = 13

func newNetwork() *network {
	n := &network{engine: New()}
	n.routes = NewInput[string, route](n.engine, "routes")
	n.services = NewInput[string, int](n.engine, "services")
	n.slices = NewInput[string, string](n.engine, "slices")
	byService := NewIndex(n.slices, func(_, service string, yield func(string)) { yield(service) }, cmp.Compare[string])
	bySize := NewIndex(n.services, func(_ string, port int, yield func(bool)) {
		if port == hostile {
			panic("hostile port")
		}
		yield(port > 3)
	}, cmp.Compare[string])

	endpoints := Group("endpoints", byService, func(c *Ctx, service string, m Members[string, string]) (string, bool) {
		port, ok := Get(c, n.services, service)
		return fmt.Sprint(service, port, ok, m.Len()), ok || m.Len() > 1
	})
	resolved := Map("resolved", n.routes, func(c *Ctx, k string, r route, emit func(string, int)) {
		port, ok := Get(c, n.services, r.service)
		if !ok {
			return
		}
		if port == hostile {
			panic("hostile port")
		}
		if port%2 == 0 {
			emit(k+"/even", port)
		}
		emit(k+"/"+r.group, port)
		for s := range Select(c, bySize, port > 3).All() {
			emit(k+"/beside/"+s, port)
		}
	})
	byPart := NewIndex(resolved, func(k string, _ int, yield func(string)) {
		for part := range strings.SplitSeq(k, "/") {
			yield(part)
		}
	}, cmp.Compare[string])
	tables := Group("tables", byPart, func(c *Ctx, part string, m Members[string, int]) (string, bool) {
		e, _ := Get(c, endpoints, part)
		var text strings.Builder
		for k, port := range m.All() {
			fmt.Fprintf(&text, "%s=%d %s;", k, port, e)
		}
		return text.String(), m.Len() != 2
	})
	// What is read depends on what was read.
	answers := Map("answers", tables, func(c *Ctx, part, text string, emit func(string, string)) {
		for p := range strings.SplitSeq(text, "/") {
			if other, ok := Get(c, tables, p[:1]); ok && p[:1] != part {
				emit(part+">"+p[:1], other)
				return
			}
		}
		r, ok := Get(c, n.routes, part)
		emit(part, fmt.Sprint(r, ok))
	})
	counts := Count("counts", resolved, func(_ string, port int, yield func(int)) { yield(port % 3) })
	keys := Keys("keys", func(_ string, port int, yield func(int)) { yield(port % 5) }, resolved)
	total := Fold("total", counts,
		func(_, _ int, yield func(string)) { yield("all") },
		func(sum, _, n int) int { return sum + n },
		func(sum, _, n int) int { return sum - n })

	n.derived = []func(c *Ctx) map[string]string{
		contents(endpoints), contents(resolved), contents(tables), contents(answers), contents(counts), contents(keys), contents(total),
	}
	n.weights = []func() weight{
		tableWeight(n.routes), tableWeight(n.services), tableWeight(n.slices),
		tableWeight(endpoints), tableWeight(resolved), tableWeight(tables), tableWeight(answers), tableWeight(counts), tableWeight(keys), tableWeight(total),
		indexWeight(byService), indexWeight(bySize), indexWeight(byPart),
	}
	return n
}

func contents[K comparable, V any](t Table[K, V]) func(c *Ctx) map[string]string {
	return func(c *Ctx) map[string]string {
		out := map[string]string{}
		for k, v := range All(c, t) {
			out[fmt.Sprint(k)] = fmt.Sprint(v)
		}
		return out
	}
}

func (n *network) state() []map[string]string {
	var out []map[string]string
	n.engine.View(func(c *Ctx) {
		for _, table := range n.derived {
			out = append(out, table(c))
		}
	})
	return out
}

// inputs is what a network is given.
type inputs struct {
	routes   map[string]route
	services map[string]int
	slices   map[string]string
}

func noInputs() inputs {
	return inputs{map[string]route{}, map[string]int{}, map[string]string{}}
}

// sets returns the writes that bring the inputs into a network, in random order.
func (in inputs) sets(t *rapid.T, n *network) []func(tx *Tx) {
	var sets []func(tx *Tx)
	for _, k := range slices.Sorted(maps.Keys(in.routes)) {
		sets = append(sets, func(tx *Tx) { n.routes.Set(tx, k, in.routes[k]) })
	}
	for _, k := range slices.Sorted(maps.Keys(in.services)) {
		sets = append(sets, func(tx *Tx) { n.services.Set(tx, k, in.services[k]) })
	}
	for _, k := range slices.Sorted(maps.Keys(in.slices)) {
		sets = append(sets, func(tx *Tx) { n.slices.Set(tx, k, in.slices[k]) })
	}
	if len(sets) == 0 {
		return nil
	}
	return rapid.Permutation(sets).Draw(t, "order")
}

var names = rapid.SampledFrom([]string{"a", "b", "c", "d"})

// change makes one random change to a network and to the record of its inputs.
func (in inputs) change(t *rapid.T, n *network, tx *Tx, ports *rapid.Generator[int]) {
	k := names.Draw(t, "key")
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		in.routes[k] = route{names.Draw(t, "group"), names.Draw(t, "service")}
		n.routes.Set(tx, k, in.routes[k])
	case 1:
		delete(in.routes, k)
		n.routes.Delete(tx, k)
	case 2:
		in.services[k] = ports.Draw(t, "port")
		n.services.Set(tx, k, in.services[k])
	case 3:
		delete(in.services, k)
		n.services.Delete(tx, k)
	case 4:
		in.slices[k] = names.Draw(t, "service")
		n.slices.Set(tx, k, in.slices[k])
	case 5:
		delete(in.slices, k)
		n.slices.Delete(tx, k)
	}
}

// TestIncrementalEqualsFromScratch protects all laws: whatever the history, the
// tables hold what a fresh engine computes from the final inputs alone, in
// whatever order and grouping it gets them.
func TestIncrementalEqualsFromScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, in := newNetwork(), noInputs()
		for range rapid.IntRange(1, 20).Draw(t, "transactions") {
			c := n.engine.Update(func(tx *Tx) {
				for range rapid.IntRange(0, 8).Draw(t, "changes") {
					in.change(t, n, tx, rapid.IntRange(1, 6))
				}
			})
			if len(c.Failures) > 0 {
				t.Fatal(c.Failures[0], c.Failures[0].Stack)
			}
			fresh := newNetwork()
			for batch := range slices.Chunk(in.sets(t, fresh), rapid.IntRange(1, 12).Draw(t, "batch")) {
				fresh.engine.Update(func(tx *Tx) {
					for _, set := range batch {
						set(tx)
					}
				})
			}
			if d := gocmp.Diff(fresh.state(), n.state()); d != "" {
				t.Fatalf("incremental result differs from scratch (-scratch +incremental):\n%s", d)
			}
			if want, got := fresh.weight(), n.weight(); got != want {
				t.Fatalf("incremental bookkeeping: %+v, from scratch: %+v", got, want)
			}
		}
	})
}

// TestFailuresHeal protects the promise about functions that panic: nothing else
// suffers, and when the cause is gone no trace of it is left.
func TestFailuresHeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, in := newNetwork(), noInputs()
		for range rapid.IntRange(1, 10).Draw(t, "transactions") {
			n.engine.Update(func(tx *Tx) {
				for range rapid.IntRange(0, 8).Draw(t, "changes") {
					in.change(t, n, tx, rapid.SampledFrom([]int{1, 2, 5, hostile}))
				}
			})
		}
		n.engine.Update(func(tx *Tx) {
			for k, port := range in.services {
				if port == hostile {
					in.services[k] = 4
					n.services.Set(tx, k, 4)
				}
			}
		})
		fresh := newNetwork()
		fresh.engine.Update(func(tx *Tx) {
			for _, set := range in.sets(t, fresh) {
				set(tx)
			}
		})
		if d := gocmp.Diff(fresh.state(), n.state()); d != "" {
			t.Fatalf("healed result differs from scratch (-scratch +healed):\n%s", d)
		}
		if want, got := fresh.weight(), n.weight(); got != want {
			t.Fatalf("healed bookkeeping: %+v, from scratch: %+v", got, want)
		}
	})
}

// TestNothingIsLeft protects against leaks: when all inputs are gone, so is all
// that was made for them.
func TestNothingIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, in := newNetwork(), noInputs()
		for range rapid.IntRange(1, 10).Draw(t, "transactions") {
			n.engine.Update(func(tx *Tx) {
				for range rapid.IntRange(0, 8).Draw(t, "changes") {
					in.change(t, n, tx, rapid.SampledFrom([]int{1, 2, 5, hostile}))
				}
			})
		}
		for _, k := range []string{"a", "b", "c", "d"} {
			n.engine.Update(func(tx *Tx) {
				n.routes.Delete(tx, k)
				n.services.Delete(tx, k)
				n.slices.Delete(tx, k)
			})
		}
		if left := n.weight(); left != (weight{}) {
			t.Fatalf("left after everything was deleted: %+v", left)
		}
	})
}

// The keys that functions look for are known, whether they have a value or not, until
// no function looks for them any more.
func TestAsked(t *testing.T) {
	e := New()
	wishes := NewInput[string, string](e, "wishes")
	things := NewInput[string, int](e, "things")
	Map("granted", wishes, func(c *Ctx, k, thing string, emit func(string, int)) {
		if n, ok := Get(c, things, thing); ok {
			emit(k, n)
		}
	})
	asked := func() []string { return slices.Sorted(things.Asked) }
	version := things.AskedVersion()
	moved := func() bool {
		before := version
		version = things.AskedVersion()
		return version != before
	}
	e.Update(func(tx *Tx) {
		wishes.Set(tx, "a", "moon")
		wishes.Set(tx, "b", "bread")
		things.Set(tx, "bread", 1)
		things.Set(tx, "salt", 1)
	})
	if got, want := asked(), []string{"bread", "moon"}; !slices.Equal(got, want) || !moved() {
		t.Errorf("asked for %v, want %v", got, want)
	}
	e.Update(func(tx *Tx) {
		things.Set(tx, "bread", 2)
		things.Set(tx, "moon", 1)
		things.Delete(tx, "salt")
		things.Set(tx, "salt", 2)
		wishes.Set(tx, "c", "bread")
	})
	if moved() {
		t.Error("the version is another although the same is asked for")
	}
	e.Update(func(tx *Tx) {
		wishes.Delete(tx, "a")
		wishes.Set(tx, "b", "salt")
	})
	if got, want := asked(), []string{"bread", "salt"}; !slices.Equal(got, want) || !moved() {
		t.Errorf("asked for %v, want %v", got, want)
	}
	e.Update(func(tx *Tx) { wishes.Delete(tx, "c") })
	if got, want := asked(), []string{"salt"}; !slices.Equal(got, want) || !moved() {
		t.Errorf("asked for %v, want %v", got, want)
	}
}
