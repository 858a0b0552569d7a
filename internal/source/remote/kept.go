package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/file/journal"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote/wire"
)

// keeper keeps the last state of a server for the next process, as package file keeps what is
// valid. A nil keeper keeps nothing.
type keeper struct {
	dir     string
	journal *journal.Journal
	records []journal.Record // of an earlier process, until they are loaded
	log     *slog.Logger
	fresh   bool // nothing is kept yet
	lacking bool // the journal is not what is in force
	// leftover says that the journal may have versions of Secrets that an earlier process
	// superseded, and was killed before it had erased them.
	leftover bool
}

// kept is how an object stands in the journal.
type kept struct {
	Version string          `json:"version"` // empty to have it sent again
	Object  json.RawMessage `json:"object"`
}

// asOfFile has the time of the last state as its own, and its version as its content.
const asOfFile = "state"

// touchEvery is how exact the age of a state is after a process was killed.
const touchEvery = time.Minute

// openKeeper opens what is kept of a server. Where that fails, nothing is kept: it is a
// safeguard, and no reason not to serve.
func openKeeper(stateDir, address string, log *slog.Logger) *keeper {
	if stateDir == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(address))
	dir := filepath.Join(stateDir, "remote-"+hex.EncodeToString(sum[:])[:10])
	fail := func(err error) *keeper {
		log.Error("the state of the config server can't be kept: after a restart it has to be reached before its objects are served", "error", err)
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return fail(err)
	}
	j, records, fresh, err := journal.Open(dir)
	if err != nil {
		return fail(err)
	}
	if j.Lost > 0 {
		log.Warn("a part of the state that was kept can't be read and is left out", "file", filepath.Join(dir, journal.Name), "bytes", j.Lost)
	}
	return &keeper{dir: dir, journal: j, records: records, fresh: fresh, log: log}
}

func (k *keeper) close() {
	if k != nil {
		_ = k.journal.Close()
	}
}

// load gives a source the objects that an earlier process has kept, and says when they were the
// server's. ok is false if nothing is kept.
func (k *keeper) load(s *Source) (asOf time.Time, ok bool) {
	if k == nil {
		return time.Time{}, false
	}
	info, err := os.Stat(filepath.Join(k.dir, asOfFile))
	// Of a state that was not complete, or of which a part is lost, a guard may be missing, and what it guards not.
	if err != nil || k.fresh || k.journal.Lost > 0 {
		k.records, k.lacking = nil, !k.fresh
		return time.Time{}, false
	}
	last := map[object.Key]*journal.Record{}
	for i := range k.records {
		r := &k.records[i]
		k.leftover = k.leftover || last[r.Key] != nil && r.Key.Kind == kind.Secret
		if last[r.Key] = r; r.Forgotten {
			delete(last, r.Key)
		}
	}
	k.records = nil
	for key, r := range last {
		e, err := s.revive(key, r)
		if err != nil {
			k.log.Warn("what was kept of an object can't be used", "object", key.String(), "error", err)
			continue
		}
		s.entries[key] = e
	}
	return info.ModTime(), true
}

// revive reads a kept object as the server's would be read.
func (s *Source) revive(key object.Key, r *journal.Record) (*entry, error) {
	var k kept
	if err := json.Unmarshal(r.Object, &k); err != nil {
		return nil, err
	}
	if s.urls[key.Kind] == "" {
		return nil, fmt.Errorf("%s is not read", key.Kind)
	}
	if r.StandIn {
		var content map[string]any
		if err := utiljson.Unmarshal(k.Object, &content); err != nil {
			return nil, err
		}
		id, err := s.validator.Identify(content)
		if err != nil {
			return nil, err
		}
		return s.guarded(&entry{}, id, content), nil
	}
	e := s.decode(key, k.Object)
	if len(e.problems) > 0 { // this version has other rules: a guard has its stand-in
		if e.object == nil {
			return nil, e.problems[0]
		}
		return e, nil
	}
	e.version = k.Version
	e.object.SetResourceVersion(k.Version)
	return e, nil
}

// record is what is kept of an object.
func (s *Source) record(key object.Key) (journal.Record, bool) {
	r := journal.Record{ID: journal.ID{Key: key}}
	e := s.entries[key]
	if e == nil || e.object == nil {
		r.Forgotten = true
		return r, true
	}
	text, err := wire.Encode(e.object)
	if err == nil {
		r.Object, err = json.Marshal(kept{e.version, text})
	}
	if err != nil {
		s.log.Error("an object can't be kept, please report this", "object", key.String(), "error", err)
		return r, false
	}
	r.StandIn = e.standIn
	return r, true
}

// records yields what there is to keep of objects.
func (s *Source) records(keys iter.Seq[object.Key]) iter.Seq[journal.Record] {
	return func(yield func(journal.Record) bool) {
		for key := range keys {
			if r, ok := s.record(key); ok && !yield(r) {
				return
			}
		}
	}
}

// all yields the keys of all objects.
func (s *Source) all(yield func(object.Key) bool) {
	for key := range s.entries {
		if !yield(key) {
			return
		}
	}
}

// save writes down a state that is in force, of which some objects have changed. Nothing is left
// of a Secret that is replaced or removed.
func (k *keeper) save(s *Source, changed []object.Key) {
	if k == nil {
		return
	}
	defer k.seen(s.State())
	if k.lacking || k.leftover || !k.fresh && k.journal.Wasteful() {
		k.rewrite(s)
		return
	}
	end := k.journal.End()
	if err := k.journal.Append(s.records(slices.Values(changed))); err != nil {
		k.failed(err)
		return
	}
	if k.fresh {
		k.journal.Filled()
		k.fresh = false
	}
	secrets := map[journal.ID]bool{}
	for _, key := range changed {
		if key.Kind == kind.Secret {
			secrets[journal.ID{Key: key}] = true
		}
	}
	if len(secrets) > 0 {
		if err := k.journal.Erase(secrets, end); err != nil {
			k.failed(err)
		}
	}
}

// failed removes what is kept, which is not what is in force any more, and must not come back.
func (k *keeper) failed(err error) {
	if !k.lacking {
		k.log.Error("the state of the config server can't be kept; what was kept is removed", "error", err)
	}
	k.lacking = true
	_ = os.Remove(filepath.Join(k.dir, asOfFile))
	if err := k.journal.Forget(); err != nil {
		k.log.Error("what is kept can't be removed: older versions of objects may come back after a restart", "error", err)
	}
}

// rewrite writes all down that there is.
func (k *keeper) rewrite(s *Source) {
	if err := k.journal.Rewrite(s.records(s.all)); err != nil {
		k.failed(err)
		return
	}
	k.lacking, k.leftover = false, false
}

// seen notes when a state was the server's.
func (k *keeper) seen(st source.Remote) {
	if k == nil || k.lacking || st.AsOf.IsZero() {
		return
	}
	if err := os.WriteFile(filepath.Join(k.dir, asOfFile), []byte(st.Version+"\n"), 0o600); err == nil {
		k.touch(st.AsOf)
	}
}

func (k *keeper) touch(at time.Time) { _ = os.Chtimes(filepath.Join(k.dir, asOfFile), at, at) }

// age keeps the time of the state up to date while it is the server's, until ctx ends.
func (k *keeper) age(ctx context.Context, state func() source.Remote) {
	if k == nil {
		return
	}
	tick := time.NewTicker(touchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if st := state(); st.Current {
				k.touch(st.AsOf)
			}
		}
	}
}
