package golden

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// shuffles is how many orders of a file's objects are tried. The seeds are fixed,
// so that what fails once fails again.
const shuffles = 4

// TestSteps applies every file's objects one by one, each as a transaction of its
// own, in several orders: the outcome is that of all at once, byte for byte. It
// stays so when each object goes and comes back, and nothing is left of any stage
// when all have gone.
func TestSteps(t *testing.T) {
	each(t, func(t *testing.T, f *file) {
		objects := f.load(t).Set
		once := &steps{t: t, p: f.evaluated(t, "")}
		once.apply(source.Batch{Set: objects})
		want := printedAll(t, once.p)
		for seed := range uint64(shuffles) {
			s := &steps{t: t, p: f.evaluated(t, ""), random: rand.New(rand.NewPCG(seed, 0))}
			s.each(objects, s.set)
			s.same(want, "applied one by one")
			s.each(objects, func(o source.Object) {
				s.remove(o)
				s.set(o)
			})
			s.same(want, "each removed and applied again")
			s.each(objects, s.remove)
			s.empty()
		}
	})
}

// steps changes the objects of a pipeline one by one.
type steps struct {
	t      *testing.T
	p      *pipeline.Pipeline
	random *rand.Rand
}

// each calls do for all objects in random order.
func (s *steps) each(objects []source.Object, do func(source.Object)) {
	for _, i := range s.random.Perm(len(objects)) {
		do(objects[i])
	}
}

func (s *steps) set(o source.Object) { s.apply(source.Batch{Set: []source.Object{o}}) }

func (s *steps) remove(o source.Object) {
	s.apply(source.Batch{Deleted: []object.Key{keyOf(o)}})
}

func (s *steps) apply(b source.Batch) {
	s.t.Helper()
	for _, failure := range s.p.Apply(b).Failures {
		s.t.Errorf("%v\n%s", failure, failure.Stack)
	}
}

func keyOf(o source.Object) object.Key {
	kind := o.GetObjectKind().GroupVersionKind()
	return object.Key{Kind: object.KindOf(kind.Group, kind.Kind), Name: object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

func (s *steps) same(want, how string) {
	s.t.Helper()
	if diff := cmp.Diff(want, printedAll(s.t, s.p)); diff != "" {
		s.t.Errorf("%s, it is not as at once (-at once):\n%s", how, diff)
	}
}

// empty checks that no table has an entry left.
func (s *steps) empty() {
	s.t.Helper()
	for _, table := range s.p.Engine.Stats() {
		if table.Entries > 0 {
			s.t.Errorf("table %s has %d entries, though all objects are gone: %s", table.Table, table.Entries, s.keys(table.Table))
		}
	}
}

func (s *steps) keys(table string) (keys []string) {
	entries, _ := s.p.Engine.Dump(table)
	for k := range entries {
		keys = append(keys, fmt.Sprint(k))
	}
	return keys
}
