package file

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"os"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/foreign"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// state is everything that is known of the inputs. One goroutine owns it.
type state struct {
	*Source
	files    map[string]*file // by name
	tree     *tree
	index    *index
	reported map[string][]source.Problem // what consumers were last told, by file
	places   map[string]uint64           // and what stands where: a sum of it, by file
	seed     maphash.Seed                // of these sums
	others   map[string][]foreign.Policy // likewise, other implementations' policies
	kept     *keeper                     // nil if nothing outlives the process
	emptied  bool                        // the last scan has found files that are emptied, so that the next one looks at all
}

func newState(s *Source) *state {
	return &state{
		Source: s, files: map[string]*file{}, tree: &tree{}, index: newIndex(), reported: map[string][]source.Problem{},
		places: map[string]uint64{}, seed: maphash.MakeSeed(), others: map[string][]foreign.Policy{},
	}
}

// keep makes the state go on from what a keeper has.
func (s *state) keep(k *keeper) {
	s.kept = k
	s.index.birth, s.index.last, s.index.youngest = k.birth, s.lastKept, k.youngest()
	s.index.first = func(key object.Key) (string, uint64) {
		if r := k.standing(key); r != nil {
			return r.File, r.Sum
		}
		return "", 0
	}
	s.index.absolute = s.absolute
}

// scanAll looks at every input again.
func (s *state) scanAll(ctx context.Context, watch watcher) (source.Batch, error) {
	s.tree = s.walk(watch)
	seen := map[string]bool{}
	var todo []*reading
	for _, c := range s.tree.files {
		seen[c.name] = true
		prior := s.files[c.name]
		if prior != nil && prior.unread == nil && prior.emptied == nil && c.info != nil && prior.stamp.settledAs(c.info) {
			continue
		}
		todo = append(todo, &reading{candidate: c, prior: prior})
	}
	s.tree.files, s.tree.seen = nil, nil // as large as the tree, and of use once
	var gone []*file
	for name, f := range s.files {
		if !seen[name] && !s.tree.covers(name, f.root) {
			gone = append(gone, f)
		}
	}
	return s.apply(ctx, todo, gone)
}

// scanFiles looks again at files that a watch event named.
func (s *state) scanFiles(ctx context.Context, names []string) (source.Batch, error) {
	var todo []*reading
	var gone []*file
	for _, name := range names {
		dir, ok := s.tree.dirs[s.tree.realDir(name)]
		prior := s.files[name]
		info, err := os.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if prior != nil {
				gone = append(gone, prior)
			}
		case ok:
			todo = append(todo, &reading{candidate: candidate{name: name, root: dir.root, info: info}, prior: prior})
		}
	}
	return s.apply(ctx, todo, gone)
}

// apply reads files, in parallel, and makes one batch of what changed.
func (s *state) apply(ctx context.Context, todo []*reading, gone []*file) (source.Batch, error) {
	if err := s.readFiles(ctx, todo); err != nil {
		return source.Batch{}, err
	}
	if err := s.readDocuments(ctx, todo); err != nil {
		return source.Batch{}, err
	}

	var removed, added []*definition
	s.emptied = slices.ContainsFunc(todo, func(r *reading) bool { return (r.same || r.err != nil) && r.prior != nil && r.prior.emptied != nil })
	if s.kept.restoring() {
		added = s.restore(todo)
	}
	names := map[string]struct{}{}
	for _, f := range gone {
		removed = append(removed, f.definitions()...)
		names[f.name] = struct{}{}
		delete(s.files, f.name)
	}
	for _, r := range todo {
		if r.same {
			continue
		}
		out, in := s.replace(r)
		removed, added = append(removed, out...), append(added, in...)
		names[r.name] = struct{}{}
	}
	s.kept.changing(s, removed)
	s.kept.changing(s, added)
	batch, touched := s.index.update(removed, added)
	for f := range touched {
		names[f.name] = struct{}{}
	}
	s.report(&batch, names)
	return batch, nil
}

// report adds the problems of the files that may have new ones, and of what
// could not be walked.
func (s *state) report(batch *source.Batch, names map[string]struct{}) {
	for name := range s.tree.faults {
		names[name] = struct{}{}
	}
	for name := range s.reported {
		if _, ok := s.files[name]; !ok {
			names[name] = struct{}{}
		}
	}
	for name := range names {
		s.place(batch, name)
		s.tellForeign(batch, name)
		var problems []source.Problem
		if p, ok := s.tree.faults[name]; ok {
			p.Stale = s.holds(name)
			problems = append(problems, p)
		}
		if f := s.files[name]; f != nil {
			problems = append(problems, s.index.problems(f)...)
		}
		if slices.EqualFunc(problems, s.reported[name], source.Problem.Equal) {
			continue
		}
		if batch.Problems == nil {
			batch.Problems = map[string][]source.Problem{}
		}
		batch.Problems[name] = problems
		if len(problems) == 0 {
			delete(s.reported, name)
		} else {
			s.reported[name] = problems
		}
	}
}

// place adds where the objects of a file stand, if that has changed.
func (s *state) place(batch *source.Batch, name string) {
	var places []source.Place
	if f := s.files[name]; f != nil {
		places = s.index.places(f)
	}
	sum := uint64(0)
	for _, at := range places {
		sum = sum*31 + maphash.Comparable(s.seed, at)
	}
	if sum == s.places[name] {
		return
	}
	if batch.Places == nil {
		batch.Places = map[string][]source.Place{}
	}
	batch.Places[name] = places
	if len(places) == 0 {
		delete(s.places, name)
	} else {
		s.places[name] = sum
	}
}

// tellForeign adds other implementations' policies of a file, if they have changed.
func (s *state) tellForeign(batch *source.Batch, name string) {
	var list []foreign.Policy
	if f := s.files[name]; f != nil {
		list = f.foreign()
	}
	if slices.EqualFunc(list, s.others[name], foreign.Policy.Equal) {
		return
	}
	if batch.Foreign == nil {
		batch.Foreign = map[string][]foreign.Policy{}
	}
	batch.Foreign[name] = list
	if len(list) == 0 {
		delete(s.others, name)
	} else {
		s.others[name] = list
	}
}

// holds reports whether objects from below a path are in force.
func (s *state) holds(path string) bool {
	for name, f := range s.files {
		if within(name, path) && (len(f.docs) > 0 || f.lastValid != nil) {
			return true
		}
	}
	return false
}
