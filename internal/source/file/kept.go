package file

import (
	"encoding/json"
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
	// written is what the journal has, without the objects, of all that may have changed since:
	// of everything until the first scan is written down. Records are in order of files.
	written map[object.Key][]journal.Record
	// filling says that there was nothing in the journal, and that not everything is yet.
	filling bool

	lacking bool // the journal has no version of some objects
	// leftover says that the journal may have versions of Secrets that an earlier process
	// superseded, and was killed before it had erased them.
	leftover bool
	// retry is when it may be rewritten again, wait after how long.
	retry time.Time
	wait  time.Duration
}

// A rewrite that fails is tried again after a time that doubles from the first to the second of
// these: all that there is may be too large, and would be written for nothing with each change.
const (
	firstWait = time.Second
	lastWait  = 15 * time.Minute
)

// openKeeper opens what is kept in a state directory. Where that fails, nothing is kept: it
// is a safeguard, and no reason not to serve.
func openKeeper(dir string, log *slog.Logger) *keeper {
	if dir == "" {
		return nil
	}
	j, records, fresh, err := journal.Open(dir)
	if err != nil {
		log.Error("last valid versions can't be kept: after a restart, what is broken then is as if it never had been valid", "error", err)
		return nil
	}
	if j.Lost > 0 {
		log.Warn("a part of the last valid versions can't be read and is left out: what of them is broken now is as if it never had been valid",
			"file", filepath.Join(dir, journal.Name), "bytes", j.Lost)
	}
	k := &keeper{
		journal: j, log: log, first: fresh || len(records) == 0,
		earlier: map[string]map[object.Key]*journal.Record{}, written: map[object.Key][]journal.Record{},
	}
	secrets := map[journal.ID]bool{}
	for i := range records {
		r := &records[i]
		if r.Key.Kind == kind.Secret {
			k.leftover = k.leftover || secrets[r.ID]
			secrets[r.ID] = !r.Forgotten
		}
		if r.Forgotten {
			delete(k.earlier[r.File], r.Key)
			continue
		}
		if k.earlier[r.File] == nil {
			k.earlier[r.File] = map[object.Key]*journal.Record{}
		}
		k.earlier[r.File][r.Key] = r
	}
	for _, name := range slices.Sorted(maps.Keys(k.earlier)) {
		for key, r := range k.earlier[name] {
			k.written[key] = append(k.written[key], *r)
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

// birth says how old an object is of which the index has none yet, if that is known; zero
// is older than all that comes later.
func (k *keeper) birth(key object.Key) (metav1.Time, bool) {
	if k == nil || k.first {
		return metav1.Time{}, true
	}
	if of := k.written[key]; k.restoring() && len(of) > 0 {
		return metav1.Time{Time: of[0].Born}, true
	}
	return metav1.Time{}, false
}

// youngest is the latest age that an earlier process has kept.
func (k *keeper) youngest() (latest time.Time) {
	for _, records := range k.written {
		for i := range records {
			if records[i].Born.After(latest) {
				latest = records[i].Born
			}
		}
	}
	return latest
}

// standing is what an earlier process had in force of an object; nil if that is not known.
func (k *keeper) standing(key object.Key) *journal.Record {
	if !k.restoring() {
		return nil
	}
	of := k.written[key]
	for i := range of {
		if of[i].First || len(of) == 1 {
			return &of[i]
		}
	}
	return nil
}

// changing notes what the journal has of objects whose definitions are about to change.
func (k *keeper) changing(s *state, defs []*definition) {
	if k == nil || k.restoring() {
		return
	}
	for _, def := range defs {
		key := def.key()
		if _, ok := k.written[key]; ok {
			continue
		}
		var of []journal.Record
		for _, was := range s.toKeep(key) {
			of = append(of, was.Record)
		}
		k.written[key] = of
	}
}

// portion is of how many objects the changes are written down at once. All of a first scan take seconds, for
// which the next edit would wait.
const portion = 1000

// unsaved reports whether save left some changes for another time.
func (s *state) unsaved() bool { return s.kept != nil && len(s.kept.written) > 0 }

// save writes down what has changed, a portion of it if that is much. It is called behind each batch that has
// been handed over, so that nobody waits for it.
func (s *state) save() {
	k := s.kept
	if k == nil {
		return
	}
	if k.restoring() {
		for _, f := range s.files {
			for _, def := range f.definitions() {
				if key := def.key(); k.written[key] == nil {
					k.written[key] = nil // what is new differs from nothing
				}
			}
		}
		k.filling = k.first
	}
	k.earlier, k.first = nil, false
	if changes := s.changes(k.takePortion()); len(changes) > 0 {
		k.append(s, changes)
	}
	if k.filling {
		k.journal.Filled()
		k.filling = s.unsaved()
	}
	if (k.lacking || k.leftover || k.journal.Wasteful()) && !s.unsaved() && !time.Now().Before(k.retry) {
		k.rewrite(s)
	}
}

// takePortion returns what the journal has of some objects, or of all, and notes that it is about to have all
// of them.
func (k *keeper) takePortion() map[object.Key][]journal.Record {
	if len(k.written) <= portion {
		all := k.written
		k.written = map[object.Key][]journal.Record{}
		return all
	}
	some := make(map[object.Key][]journal.Record, portion)
	for key, of := range k.written {
		some[key] = of
		delete(k.written, key)
		if len(some) == portion {
			break
		}
	}
	return some
}

// changes are between what the journal has of some objects and what there is of them.
func (s *state) changes(written map[object.Key][]journal.Record) (changes []keeping) {
	for _, key := range slices.SortedFunc(maps.Keys(written), object.Key.Compare) {
		was := written[key]
		for _, of := range s.toKeep(key) {
			i := slices.IndexFunc(was, func(r journal.Record) bool { return r.ID == of.ID })
			if i < 0 || was[i].Sum != of.Sum || !was[i].Born.Equal(of.Born) || was[i].StandIn != of.StandIn || was[i].First != of.First {
				of.supersedes = i >= 0
				changes = append(changes, of)
			}
			if i >= 0 {
				was = slices.Delete(slices.Clone(was), i, i+1)
			}
		}
		for _, r := range was {
			changes = append(changes, keeping{Record: journal.Record{ID: r.ID, Forgotten: true}, supersedes: true})
		}
	}
	return changes
}

// append adds changes to the journal. What they supersede must not come back if they can't be
// written, and nothing is left of a Secret that is replaced or removed.
func (k *keeper) append(s *state, changes []keeping) {
	end := k.journal.End()
	ids := map[journal.ID]bool{}
	for _, of := range changes {
		if of.Key.Kind == kind.Secret && (of.supersedes || k.leftover) {
			ids[of.ID] = true
		}
	}
	err := k.journal.Append(wholes(s.log, slices.Values(changes)))
	if err != nil {
		if !k.lacking {
			k.log.Error("what changes can't be kept; older versions of it are removed, and what is broken after a restart is as if it never had been valid",
				"error", err)
		}
		k.lacking, end = true, k.journal.End()
		for _, of := range changes {
			ids[of.ID] = true
		}
	}
	if len(ids) == 0 {
		return
	}
	if err := k.journal.Erase(ids, end); err != nil {
		k.log.Error("older versions of what changes can't be removed one by one: all that is kept is removed", "error", err)
		k.lacking = true
		if err := k.journal.Forget(); err != nil {
			k.log.Error("what is kept can't be removed: older versions of objects may come back after a restart", "error", err)
		}
	}
}

// rewrite writes all down that there is.
func (k *keeper) rewrite(s *state) {
	if err := k.journal.Rewrite(s.records); err != nil {
		if k.wait == 0 {
			k.log.Error("last valid versions can't be written anew", "error", err)
		}
		k.wait = min(max(2*k.wait, firstWait), lastWait)
		k.retry = time.Now().Add(k.wait)
		return
	}
	if k.lacking {
		k.log.Info("all last valid versions are kept again")
	}
	k.lacking, k.leftover, k.wait, k.retry = false, false, 0, time.Time{}
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
	wholes(s.log, func(yield func(keeping) bool) {
		for _, key := range s.keys() {
			for _, of := range s.toKeep(key) {
				if !yield(of) {
					return
				}
			}
		}
	})(yield)
}

// wholes yields records with their objects.
func wholes(log *slog.Logger, of iter.Seq[keeping]) iter.Seq[journal.Record] {
	return func(yield func(journal.Record) bool) {
		for of := range of {
			if r, ok := of.whole(log); ok && !yield(r) {
				return
			}
		}
	}
}

// keeping is a record without its object, which is in the definition; nil for a record that
// takes one back.
type keeping struct {
	journal.Record
	def        *definition
	supersedes bool // the journal has an earlier record of the same
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
		of := keeping{Record: journal.Record{ID: id, Born: born, Sum: def.sum}, def: def}
		of.StandIn = def.object == nil
		switch same := slices.IndexFunc(out, func(o keeping) bool { return o.ID == id }); {
		case same < 0:
			out = append(out, of)
		case out[same].StandIn:
			out[same] = of
		}
	}
	for i := range out {
		out[i].First = len(out) > 1 && out[i].File == s.absolute(winner.doc.file.name)
	}
	return out
}

// whole returns the record with its object.
func (of keeping) whole(log *slog.Logger) (journal.Record, bool) {
	if of.def == nil {
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
