package fleetapi

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/gatehouse-dev/gatehouse/internal/fleet"
)

// Store holds the proxies as they are, and what has changed of late.
//
// Each change has a version: the time in milliseconds when it was noticed, and a random tag of the process that noticed
// it. Versions of one controller grow with each change. Those of another are compared by time: what it has said is
// known up to some seconds before, since clocks differ and a change is not noticed by all at once. A client that goes
// over to another controller so gets some rows twice, and loses none.
type Store struct {
	tag  version
	now  func() time.Time
	open chan struct{} // closed by the first Set

	mu      sync.Mutex
	last    version // the newest
	oldest  version // what has changed up to here is not known
	proxies map[key]*entry
	gone    []*entry      // by version
	changed chan struct{} // closed by the next change
}

type key struct{ namespace, name string }

func keyOf(p *fleet.Proxy) key {
	namespace, _, _ := strings.Cut(p.Gateway, "/")
	return key{namespace, p.Pod}
}

func (k key) compare(other key) int {
	return cmp.Or(strings.Compare(k.namespace, other.namespace), strings.Compare(k.name, other.name))
}

// entry is a proxy. It is never changed, but replaced.
type entry struct {
	key
	proxy   fleet.Proxy
	created version
	version version // of the last change; of its end for one that is gone
}

// version is the time in milliseconds and a tag.
type version uint64

const tagBits = 20

func (v version) millis() int64 { return int64(v >> tagBits) }

func (v version) sameTag(other version) bool { return v&(1<<tagBits-1) == other&(1<<tagBits-1) }

// String is a version as clients have it.
func (v version) String() string { return strconv.FormatUint(uint64(v), 10) }

const (
	// slack is by how much the versions of another controller may be wrong: it notices the end of a proxy of a third one
	// only when that one has been silent for a while.
	slack = 30 * time.Second
	// memory is for how long it is known what was there.
	memory = 5 * time.Minute
)

// NewStore returns a store that knows nothing.
func NewStore() *Store {
	s := &Store{
		tag: version(rand.N(1 << tagBits)), now: time.Now, //nolint:gosec // it is no secret
		open: make(chan struct{}), proxies: map[key]*entry{}, changed: make(chan struct{}),
	}
	s.last = s.at(s.now().UnixMilli())
	s.oldest = s.last
	return s
}

func (s *Store) at(millis int64) version { return version(millis)<<tagBits | s.tag }

// Set says which proxies there are. Those without a pod have no name, and are left out.
func (s *Store) Set(list []fleet.Proxy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.at(max(s.now().UnixMilli(), s.last.millis()+1))
	before := s.last
	there := make(map[key]bool, len(list))
	for i := range list {
		p := &list[i]
		k := keyOf(p)
		if k.namespace == "" || k.name == "" || there[k] {
			continue
		}
		there[k] = true
		old := s.proxies[k]
		if old != nil && old.proxy.Same(p) {
			continue
		}
		e := &entry{key: k, proxy: *p, created: v, version: v}
		if old != nil {
			e.created = old.created
		}
		s.proxies[k], s.last = e, v
	}
	for k, e := range s.proxies {
		if there[k] {
			continue
		}
		delete(s.proxies, k)
		end := *e
		end.version, s.last = v, v
		s.gone = append(s.gone, &end)
	}
	forgotten := s.at(v.millis() - memory.Milliseconds())
	for len(s.gone) > 0 && s.gone[0].version <= forgotten {
		s.gone = s.gone[1:]
	}
	s.oldest = max(s.oldest, forgotten)
	select {
	case <-s.open:
		if s.last == before {
			return
		}
	default:
		close(s.open)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// list returns all proxies by name, and the version up to which that is all.
func (s *Store) list(of selection) ([]*entry, version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*entry
	for _, e := range s.proxies {
		if of.selects(e) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *entry) int { return a.compare(b.key) })
	return out, s.reached()
}

// reached returns the version up to which all is known, now; s.mu is held.
func (s *Store) reached() version {
	s.last = s.at(max(s.now().UnixMilli(), s.last.millis()))
	return s.last
}

// get returns one proxy; nil for none.
func (s *Store) get(k key) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proxies[k]
}

// errTooOld is returned for a version of which it isn't known what has changed since.
var errTooOld = errors.New("what has changed since is not known any more: list anew")

// place returns where a watch begins that has seen everything up to a version.
func (s *Store) place(v version) (version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := v
	if !v.sameTag(s.tag) {
		from = s.at(max(0, v.millis()-slack.Milliseconds()))
	}
	// One's own clock may have been set back.
	newest := max(s.last.millis(), s.now().UnixMilli()) + slack.Milliseconds()
	if from < s.oldest || v.millis() > newest {
		return 0, errTooOld
	}
	return from, nil
}

// change is a change of a proxy.
type change struct {
	kind watch.EventType
	*entry
}

// since returns what has changed after a version, up to which version that is all, and what is closed when there is more.
func (s *Store) since(from version, of selection) (changes []change, until version, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.gone {
		if e.version > from && of.selects(e) {
			changes = append(changes, change{watch.Deleted, e})
		}
	}
	for _, e := range s.proxies {
		switch {
		case e.version <= from || !of.selects(e):
		case e.created > from:
			changes = append(changes, change{watch.Added, e})
		default:
			changes = append(changes, change{watch.Modified, e})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.version, b.version), a.compare(b.key)) })
	return changes, s.reached(), s.changed // a bookmark of a quiet fleet is no old one
}

// IsOpen reports whether it is known which proxies there are.
func (s *Store) IsOpen() bool {
	select {
	case <-s.open:
		return true
	default:
		return false
	}
}
