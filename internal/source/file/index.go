package file

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// index decides which definition of each key is in force: the first one whose object is
// valid, or was valid before.
type index struct {
	hash func(object.Key) uint64
	// chains hold all definitions, by the hash of their key: a table of keys would
	// take as much memory as everything else here. Those of one key are in order;
	// keys that share a hash share a chain.
	chains map[uint64]*definition
	// found are the winners that were looked up while nothing changes, as for problems: where
	// thousands of texts are of one key, each has some. It is nil otherwise.
	found map[object.Key]*definition
	// birth says how old an object is that is new to the index, if that is known, and last
	// what an earlier process had in force of it, or nil.
	birth func(object.Key) (metav1.Time, bool)
	last  func(object.Key) *definition
	// first is the file whose definition an earlier process had in force, and its sum; empty
	// for none.
	first    func(object.Key) (file string, sum uint64)
	absolute func(file string) string
	// youngest is the latest age that an object has had: what comes is younger, also after
	// the clock has been set back.
	youngest time.Time
	// contested are the keys with several definitions. A change anywhere may
	// reorder them, so they are looked at every time: there are few.
	contested map[object.Key]struct{}
}

func newIndex() *index {
	seed := maphash.MakeSeed()
	return &index{
		hash:   func(key object.Key) uint64 { return maphash.Comparable(seed, key) },
		chains: map[uint64]*definition{}, contested: map[object.Key]struct{}{},
		birth: func(object.Key) (metav1.Time, bool) { return metav1.Time{}, true },
		last:  func(object.Key) *definition { return nil },
		first: func(object.Key) (string, uint64) { return "", 0 },
	}
}

func (x *index) link(def *definition) {
	hash := x.hash(def.key())
	def.next, x.chains[hash] = x.chains[hash], def
}

// unlink removes definitions, of which many may be of one key: each chain is gone through once.
func (x *index) unlink(defs []*definition) {
	gone := make(map[*definition]bool, len(defs))
	hashes := make(map[uint64]bool, len(defs))
	for _, def := range defs {
		gone[def] = true
		hashes[x.hash(def.key())] = true
	}
	for hash := range hashes {
		var first, last *definition
		for def := x.chains[hash]; def != nil; {
			next := def.next
			def.next = nil
			switch {
			case gone[def]:
			case first == nil:
				first, last = def, def
			default:
				last.next, last = def, def
			}
			def = next
		}
		if x.chains[hash] = first; first == nil {
			delete(x.chains, hash)
		}
	}
}

// of returns the definitions of a key.
func (x *index) of(key object.Key) []*definition {
	var defs []*definition
	for def := x.chains[x.hash(key)]; def != nil; def = def.next {
		if def.key() == key {
			defs = append(defs, def)
		}
	}
	return defs
}

// winner returns the definition whose object, or stand-in where none ever was valid,
// consumers hold; nil where they hold nothing.
func (x *index) winner(key object.Key) *definition {
	if def, ok := x.found[key]; ok {
		return def
	}
	var winner *definition
	for def := x.chains[x.hash(key)]; def != nil; def = def.next {
		if def.inForce() == nil || def.key() != key {
			continue
		}
		if winner == nil || def.object != nil {
			winner = def
		}
		if def.object != nil {
			break
		}
	}
	if x.found != nil {
		x.found[key] = winner
	}
	return winner
}

// order sorts the definitions of a key, all of them, in their chain: the one in force stays
// before others of the same path.
func (x *index) order(key object.Key, defs []*definition, of incumbent) {
	slices.SortFunc(defs, func(a, b *definition) int {
		return cmp.Or(
			cmp.Compare(a.doc.file.root, b.doc.file.root),
			cmp.Compare(of.distance(a), of.distance(b)),
			a.compare(b),
		)
	})
	hash := x.hash(key)
	chain := slices.Clone(defs)
	for def := x.chains[hash]; def != nil; def = def.next {
		if def.key() != key {
			chain = append(chain, def) // in the order that it has among its own
		}
	}
	var first *definition
	for _, def := range slices.Backward(chain) {
		def.next, first = first, def
	}
	x.chains[hash] = first
}

// update replaces definitions and says what that means for consumers. touched
// are the files whose problems may differ from before.
func (x *index) update(removed, added []*definition) (batch source.Batch, touched map[*file]struct{}) {
	touched = map[*file]struct{}{}
	current := make(map[object.Key]*definition, len(added))
	for key := range x.contested {
		current[key] = x.winner(key)
	}
	for _, defs := range [][]*definition{removed, added} {
		for _, def := range defs {
			if _, ok := current[def.key()]; !ok {
				current[def.key()] = x.winner(def.key())
			}
		}
	}
	x.unlink(removed)
	for _, def := range added {
		x.link(def)
	}
	fresh := map[*definition]bool{}
	for _, def := range added {
		if current[def.key()] != nil { // else all of them are
			fresh[def] = true
		}
	}
	young := newcomers{now: metav1.Now(), told: told(added)}
	if !young.now.After(x.youngest) {
		young.now = metav1.Time{Time: x.youngest.Add(1)}
	}
	for _, key := range slices.SortedFunc(maps.Keys(current), byGroup) {
		defs := x.of(key)
		for _, def := range defs {
			touched[def.doc.file] = struct{}{}
		}
		x.settle(key, defs, x.incumbent(key, current[key], fresh), young, &batch)
	}
	return batch, touched
}

// settle puts the first valid definition of a key in force. It replaces the incumbent.
func (x *index) settle(key object.Key, defs []*definition, of incumbent, young newcomers, batch *source.Batch) {
	current := of.current
	if len(defs) > 1 {
		x.order(key, defs, of)
		x.contested[key] = struct{}{}
	} else {
		delete(x.contested, key)
	}
	if len(defs) == 0 {
		if current != nil {
			batch.Deleted = append(batch.Deleted, key)
		}
		return
	}
	valid := slices.IndexFunc(defs, func(d *definition) bool { return d.object != nil })
	if valid < 0 {
		// All texts of the key are invalid. The object in force stays, even if its file
		// is gone.
		was := current
		if was == nil {
			was = x.last(key)
		}
		if was != nil {
			defs[0].take(was)
		}
		valid = slices.IndexFunc(defs, func(d *definition) bool { return d.inForce() != nil })
		if valid < 0 {
			return
		}
	}
	winner := defs[valid]
	if current != nil && current.sum == winner.sum {
		winner.set(current.inForce()) // the copy that is in memory already
		return
	}
	birth, known := x.birth(key)
	switch said := winner.inForce().GetCreationTimestamp(); {
	case current != nil:
		birth = current.inForce().GetCreationTimestamp()
	case !known:
		birth = young.age(said)
	case birth.IsZero():
		birth = said // all are of the same age: a dump of a cluster keeps its order
	}
	if birth.After(x.youngest) {
		x.youngest = birth.Time
	}
	winner.publish(current, birth)
	batch.Set = append(batch.Set, winner.inForce())
}

// newcomers are objects that were seen together for the first time, now. The times that their
// texts tell, in order, decide between them, and make none of them older than what was there.
type newcomers struct {
	now  metav1.Time
	told []time.Time
}

// told returns the times that the texts of definitions tell, in order.
func told(defs []*definition) (times []time.Time) {
	for _, def := range defs {
		o := def.inForce()
		if o == nil || o.GetResourceVersion() != "" {
			continue // there is nothing, or it was read before
		}
		if at := o.GetCreationTimestamp(); !at.IsZero() {
			times = append(times, at.Time)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return slices.CompactFunc(times, time.Time.Equal)
}

// age is that of one whose text tells a time; zero for none, which is the oldest.
func (n newcomers) age(told metav1.Time) metav1.Time {
	if told.IsZero() {
		return n.now
	}
	i, _ := slices.BinarySearchFunc(n.told, told.Time, time.Time.Compare)
	return metav1.Time{Time: n.now.Add(time.Duration(i + 1))}
}

// take gives an invalid definition an earlier version of its object, or the stand-in that
// there was if it has none.
func (d *definition) take(was *definition) {
	switch {
	case was.object != nil:
		d.object = was.object
	case d.refused == nil:
		d.refused = &refusal{key: was.refused.key, standIn: was.refused.standIn}
	case d.refused.standIn != nil:
		return // it is that of the text as it is now
	default:
		d.refused.standIn = was.refused.standIn
	}
	d.sum, d.spec = was.sum, was.spec
}

// set replaces what is in force of a definition.
func (d *definition) set(o source.Object) {
	if d.object != nil {
		d.object = o
	} else {
		d.refused.standIn = o
	}
}

// publish gives a definition's object the generation after that of what is current
// if anything but metadata differs, and its age.
func (d *definition) publish(current *definition, birth metav1.Time) {
	generation := int64(1)
	if current != nil {
		generation = current.inForce().GetGeneration()
		if current.spec != d.spec {
			generation++
		}
	}
	o := d.inForce()
	published := o.GetResourceVersion() != ""
	if published && o.GetGeneration() == generation {
		return
	}
	if published {
		// The object was passed on before, so it must not be changed any more.
		o = o.DeepCopyObject().(source.Object)
		d.set(o)
	}
	o.SetGeneration(generation)
	o.SetResourceVersion(strconv.FormatUint(d.sum, 16))
	o.SetCreationTimestamp(birth)
}

// byGroup orders objects by API group, then kind, then name.
func byGroup(a, b object.Key) int {
	return cmp.Or(strings.Compare(a.Kind.Group(), b.Kind.Group()), a.Compare(b))
}
