package file

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/cespare/xxhash/v2"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/file/journal"
)

// restore gives the files of the first scan what an earlier process has kept of them, as if
// this one had read it before: from there all goes the same way. Only what is needed is
// decoded, which is nothing where nothing is broken. It returns what there is of files that
// can't be looked for.
func (s *state) restore(todo []*reading) (added []*definition) {
	found := map[string]bool{}
	for _, r := range todo {
		name := s.absolute(r.name)
		found[name] = true
		if earlier := s.kept.earlier[name]; len(earlier) > 0 {
			r.prior = s.revive(r.candidate, r.needed(earlier))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.kept.earlier)) {
		c, ok := s.candidateOf(name)
		if found[name] || !ok || !s.tree.covers(c.name, c.root) {
			continue
		}
		if f := s.revive(c, slices.Collect(maps.Values(s.kept.earlier[name]))); f != nil {
			s.files[f.name] = f
			added = append(added, f.definitions()...)
		}
	}
	return added
}

// needed returns what of a file's earlier objects its text does not replace.
func (r *reading) needed(earlier map[object.Key]*journal.Record) []*journal.Record {
	if r.err != nil {
		return slices.Collect(maps.Values(earlier))
	}
	unreadable := slices.ContainsFunc(r.chunks, func(p pending) bool { return p.doc.isUnreadable() })
	valid := map[object.Key]bool{}
	defined := map[object.Key]bool{}
	for _, p := range r.chunks {
		for _, def := range p.doc.definitions() {
			defined[def.key()] = true
			valid[def.key()] = valid[def.key()] || def.object != nil
		}
	}
	var out []*journal.Record
	for key, record := range earlier {
		if !valid[key] && (defined[key] || unreadable) {
			out = append(out, record)
		}
	}
	return out
}

// candidateOf says how a file would be found that is below the paths now.
func (s *state) candidateOf(name string) (candidate, bool) {
	for i, path := range s.paths {
		root := s.absolute(path)
		if root == "" || !within(name, root) {
			continue
		}
		rest, err := filepath.Rel(root, name)
		return candidate{name: filepath.Join(path, rest), root: i}, err == nil
	}
	return candidate{}, false
}

// revive returns a file with what was kept of it; nil if that is nothing.
func (s *state) revive(c candidate, records []*journal.Record) *file {
	f := &file{name: c.name, root: c.root}
	earlier := &document{file: f, order: math.MaxInt32}
	var defs []definition
	for _, record := range records {
		if def := s.decodeKept(record); def != nil {
			def.doc = earlier
			defs = append(defs, *def)
		}
	}
	if f.setLastValid(earlier, defs); f.lastValid == nil {
		return nil
	}
	return f
}

// lastKept returns what an earlier process had in force of an object, whatever file it was
// from; nil for nothing.
func (s *state) lastKept(key object.Key) *definition {
	if !s.kept.restoring() {
		return nil
	}
	if r := s.kept.standing(key); r != nil {
		if def := s.decodeKept(r); def != nil {
			return def
		}
	}
	for i := range s.kept.written[key] {
		if def := s.decodeKept(&s.kept.written[key][i]); def != nil {
			return def
		}
	}
	return nil
}

// decodeKept reads a kept object as its text would be read; nil if nothing can be in force of
// it, as of what needs another channel than this process reads.
func (s *state) decodeKept(record *journal.Record) *definition {
	def, err := s.decodeRecord(record)
	if err != nil {
		s.log.Warn("what was kept of an object can't be used", "object", record.Key.String(), "file", record.File, "error", err)
		return nil
	}
	if def.inForce() == nil {
		return nil
	}
	return def
}

func (s *state) decodeRecord(record *journal.Record) (*definition, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(record.Object, &content); err != nil {
		return nil, err
	}
	id, err := s.validator.Identify(content)
	if err != nil {
		return nil, err
	}
	if id.Key != record.Key {
		return nil, fmt.Errorf("it is %s", id.Key)
	}
	if meta, ok := content["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp") // the record has it, and more exactly
	}
	def := &definition{refused: &refusal{key: id.Key}}
	if record.StandIn {
		def.standIn(s.validator.StandIn(id, content))
		return def, nil
	}
	def.refused = nil
	(&reader{validator: s.validator}).decode(def, id, item{content: content}, nil)
	if def.refused != nil {
		def.refused.faults = nil // they are not those of the text that there is now
	}
	return def, nil
}

// sumOf is the hash of an object that has no text.
func sumOf(o source.Object) uint64 {
	text, err := json.Marshal(o)
	if err != nil {
		return 0 // it can't be: it was made from JSON
	}
	return xxhash.Sum64(text)
}
