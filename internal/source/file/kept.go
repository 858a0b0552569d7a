package file

import (
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source/file/journal"
)

// keeper keeps what outlives the process: the last valid versions of objects, and when
// objects were first seen. A nil keeper keeps nothing.
//
// Until the first scan is done, it has what an earlier process has kept. The scan restores
// of it what is needed, so that it goes on from where that process was.
type keeper struct {
	journal *journal.Journal
	log     *slog.Logger
	// first is true if no earlier process has kept anything: whatever is there now is of
	// the same age.
	first   bool
	earlier map[string]map[object.Key]*journal.Record // by absolute file name; nil after the first scan
	born    map[object.Key]time.Time                  // of the same objects
	failed  bool                                      // the journal lacks something
}

// openKeeper opens what is kept in a state directory. Where that fails, nothing is kept: it
// is a safeguard, and no reason not to serve.
func openKeeper(dir string, log *slog.Logger) *keeper {
	if dir == "" {
		return nil
	}
	j, records, fresh, err := journal.Open(dir)
	if err != nil {
		log.Error("last valid versions can't be kept: after a restart, what is broken answers 500", "error", err)
		return nil
	}
	k := &keeper{
		journal: j, log: log, first: fresh,
		earlier: map[string]map[object.Key]*journal.Record{}, born: map[object.Key]time.Time{},
	}
	for i := range records {
		r := &records[i]
		if r.Forgotten {
			delete(k.earlier[r.File], r.Key)
			continue
		}
		if k.earlier[r.File] == nil {
			k.earlier[r.File] = map[object.Key]*journal.Record{}
		}
		k.earlier[r.File][r.Key] = r
	}
	for _, of := range k.earlier {
		for key, r := range of {
			k.born[key] = r.Born
		}
	}
	return k
}

func (k *keeper) close() {
	if k != nil {
		_ = k.journal.Close()
	}
}

// restoring reports whether the first scan is still to be done.
func (k *keeper) restoring() bool { return k != nil && k.earlier != nil }

// restored ends the first scan.
func (k *keeper) restored() { k.earlier, k.born, k.first = nil, nil, false }

// birth says how old an object is of which the index has none yet, if that is known; zero
// is older than all that comes later.
func (k *keeper) birth(key object.Key) (metav1.Time, bool) {
	if k == nil || k.first {
		return metav1.Time{}, true
	}
	born, ok := k.born[key]
	return metav1.Time{Time: born}, ok
}

// take writes down what has changed: of the keys that an update was about, the definitions
// that there are, and of those that went away, that they did.
func (k *keeper) take(s *state, keys []object.Key, removed []*definition) {
	if k == nil {
		return
	}
	if k.failed {
		k.rewrite(s)
		return
	}
	records := k.differences(s)
	if !k.restoring() {
		records = func(yield func(journal.Record) bool) {
			kept := map[journal.ID]bool{}
			for _, key := range keys {
				for _, of := range s.toKeep(key) {
					kept[of.ID] = true
					if r, ok := of.whole(s.log); ok && !yield(r) {
						return
					}
				}
			}
			for _, def := range removed {
				if id := s.idOf(def); !kept[id] && id.File != "" && !yield(journal.Record{ID: id, Forgotten: true}) {
					return
				}
			}
		}
	}
	secrets := false
	err := k.journal.Append(func(yield func(journal.Record) bool) {
		for r := range records {
			secrets = secrets || r.Key.Kind == kind.Secret
			if !yield(r) {
				return
			}
		}
	})
	switch {
	case errors.Is(err, journal.ErrTooLarge): // what is superseded may be most of it
		k.rewrite(s)
	case err != nil:
		k.fail(err)
	case secrets, k.journal.Wasteful(): // a Secret that is gone leaves nothing behind
		k.rewrite(s)
	}
}

// differences are between what an earlier process has kept and what is there now.
func (k *keeper) differences(s *state) iter.Seq[journal.Record] {
	return func(yield func(journal.Record) bool) {
		for _, key := range s.keys() {
			for _, of := range s.toKeep(key) {
				was := k.earlier[of.File][key]
				delete(k.earlier[of.File], key)
				if was != nil && was.Sum == of.Sum && was.Born.Equal(of.Born) && was.StandIn == of.StandIn {
					continue
				}
				if r, ok := of.whole(s.log); ok && !yield(r) {
					return
				}
			}
		}
		for _, of := range k.earlier {
			for _, r := range of {
				if !yield(journal.Record{ID: r.ID, Forgotten: true}) {
					return
				}
			}
		}
	}
}

// rewrite writes all down that there is.
func (k *keeper) rewrite(s *state) {
	if err := k.journal.Rewrite(s.records); err != nil {
		k.fail(err)
		return
	}
	k.failed = false
}

// fail notes that the journal lacks something. The next change tries to write all of it.
func (k *keeper) fail(err error) {
	if errors.Is(err, journal.ErrTooLarge) {
		// A version that isn't the last one any more must not come back.
		if err := k.journal.Forget(); err != nil {
			k.log.Error("the last valid versions of an earlier time can't be removed", "error", err)
		}
	}
	if !k.failed {
		k.log.Error("last valid versions can't be kept: after a restart, what is broken answers 500", "error", err)
	}
	k.failed = true
}

// keys are those of all objects, in order.
func (s *state) keys() []object.Key {
	seen := map[object.Key]bool{}
	for _, f := range s.files {
		for _, def := range f.definitions() {
			seen[def.key()] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), object.Key.Compare)
}

// records yields what there is to keep.
func (s *state) records(yield func(journal.Record) bool) {
	for _, key := range s.keys() {
		for _, of := range s.toKeep(key) {
			if r, ok := of.whole(s.log); ok && !yield(r) {
				return
			}
		}
	}
}

// keeping is a record without its object, which is in the definition.
type keeping struct {
	journal.Record
	def *definition
}

// toKeep returns what there is to keep of an object: what each file has of it that defines
// it, the first of a file that counts.
func (s *state) toKeep(key object.Key) []keeping {
	winner := s.index.winner(key)
	if winner == nil {
		return nil
	}
	born := winner.inForce().GetCreationTimestamp().Time
	var out []keeping
	for _, def := range s.index.of(key) {
		id := s.idOf(def)
		if id.File == "" || def.inForce() == nil {
			continue
		}
		of := keeping{journal.Record{ID: id, Born: born, Sum: def.sum}, def}
		of.StandIn = def.object == nil && def.refused.kept == nil
		switch same := slices.IndexFunc(out, func(o keeping) bool { return o.ID == id }); {
		case same < 0:
			out = append(out, of)
		case out[same].StandIn:
			out[same] = of
		}
	}
	return out
}

// whole returns the record with its object.
func (of keeping) whole(log *slog.Logger) (journal.Record, bool) {
	if of.def.object == nil && of.def.refused.kept != nil {
		of.Object = of.def.refused.kept
		return of.Record, true
	}
	text, err := json.Marshal(of.def.inForce())
	if err != nil {
		log.Error("an object can't be kept, please report this", "object", of.Key.String(), "error", err)
		return journal.Record{}, false
	}
	of.Object = text
	return of.Record, true
}

// idOf names a definition for the journal. Standard input has no name: nothing says that two
// of them are about the same.
func (s *state) idOf(def *definition) journal.ID {
	return journal.ID{File: s.absolute(def.doc.file.name), Key: def.key()}
}

// absolute returns the absolute path of a file; empty for standard input.
func (s *Source) absolute(name string) string {
	switch {
	case name == stdinName:
		return ""
	case filepath.IsAbs(name):
		return name
	default:
		return filepath.Join(s.here, name)
	}
}
