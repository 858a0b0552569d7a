package configserver

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote/wire"
)

// published are the objects of a kind, by the names of their resources.
type published struct {
	*kind.Descriptor
	resources map[string]*discoveryv3.Resource
}

// store has all objects, and tells sessions which of them change.
type store struct {
	log   *slog.Logger
	begun int64 // so that versions of states differ from those of an earlier process

	mu       sync.Mutex
	types    map[string]*published // by type URL
	urls     map[object.Kind]string
	version  uint64
	sessions map[*session]struct{}
}

func newStore(types wire.Types, log *slog.Logger) *store {
	s := &store{
		log: log, begun: time.Now().Unix(), types: map[string]*published{}, urls: map[object.Kind]string{}, sessions: map[*session]struct{}{},
	}
	for url, d := range types {
		s.types[url] = &published{d, map[string]*discoveryv3.Resource{}}
		s.urls[d.Kind] = url
	}
	return s
}

// change is an object that is another one than before, or gone.
type change struct {
	url      string
	name     object.Name
	resource *discoveryv3.Resource
}

// apply takes in a batch of a source.
func (s *store) apply(b source.Batch) {
	changes := make([]change, 0, len(b.Set)+len(b.Deleted))
	for _, key := range b.Deleted {
		if url, ok := s.urls[key.Kind]; ok {
			changes = append(changes, change{url: url, name: key.Name})
		}
	}
	for _, o := range b.Set {
		key := source.KeyOf(o)
		url, ok := s.urls[key.Kind]
		if !ok {
			continue
		}
		r, err := wire.Resource(o)
		if err != nil {
			s.log.Error("an object can't be published; what was published of it stays", "object", key.String(), "error", err)
			continue
		}
		changes = append(changes, change{url, key.Name, r})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	for _, ch := range changes {
		of := s.types[ch.url]
		name := wire.Name(ch.name)
		if ch.resource == nil {
			delete(of.resources, name)
		} else if was := of.resources[name]; was.GetVersion() == ch.resource.GetVersion() {
			continue
		} else {
			of.resources[name] = ch.resource
		}
		for session := range s.sessions {
			session.note(of, ch.url, ch.name)
		}
	}
	for session := range s.sessions {
		session.wakeUp()
	}
}

// state names the state of all objects. The caller holds the lock.
func (s *store) state() string { return fmt.Sprintf("%d-%d", s.begun, s.version) }

// count returns how many objects there are of each kind.
func (s *store) count() map[object.Kind]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[object.Kind]int{}
	for _, of := range s.types {
		out[of.Kind] = len(of.resources)
	}
	return out
}

func (s *store) enter(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[c] = struct{}{}
}

func (s *store) leave(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, c)
}

// connected returns how many sessions there are.
func (s *store) connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// subscribe begins to tell a session of a kind, of which the client has some versions.
func (s *store) subscribe(c *session, url string, has map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := &subscription{pending: map[string]struct{}{}, unanswered: true}
	c.types[url] = sub
	of := s.types[url]
	if of == nil { // an answer without objects says that there are none
		for name := range has {
			sub.pending[name] = struct{}{}
		}
		return
	}
	for name, r := range of.resources {
		n, _ := wire.ParseName(of.Descriptor, name)
		if version, ok := has[name]; c.rights.sees(of.Kind, n) && (!ok || version != r.GetVersion()) {
			sub.pending[name] = struct{}{}
		}
	}
	for name := range has {
		if n, ok := wire.ParseName(of.Descriptor, name); !ok || !c.rights.sees(of.Kind, n) || of.resources[name] == nil {
			sub.pending[name] = struct{}{}
		}
	}
}

// The bounds of a response: what is more comes in further ones.
const (
	maxBytes   = 1 << 20
	maxEntries = 1000
)

// take returns the responses that bring a session's client to the newest state, and forgets
// what was pending. The last of them says that it is the last.
func (s *store) take(c *session) []*discoveryv3.DeltaDiscoveryResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*discoveryv3.DeltaDiscoveryResponse
	for _, url := range slices.Sorted(maps.Keys(c.types)) {
		sub := c.types[url]
		if len(sub.pending) == 0 && !sub.unanswered {
			continue
		}
		response := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: url}
		size, entries := 0, 0
		of := s.types[url]
		for _, name := range slices.Sorted(maps.Keys(sub.pending)) {
			if size >= maxBytes || entries >= maxEntries {
				out = append(out, response)
				response, size, entries = &discoveryv3.DeltaDiscoveryResponse{TypeUrl: url}, 0, 0
			}
			entries++
			if of == nil {
				response.RemovedResources = append(response.RemovedResources, name)
				continue
			}
			n, ok := wire.ParseName(of.Descriptor, name)
			if r := of.resources[name]; r != nil && ok && c.rights.sees(of.Kind, n) {
				response.Resources = append(response.Resources, r)
				size += len(r.GetResource().GetValue())
			} else {
				response.RemovedResources = append(response.RemovedResources, name)
			}
		}
		out = append(out, response)
		sub.pending, sub.unanswered = map[string]struct{}{}, false
	}
	if len(out) > 0 {
		out[len(out)-1].SystemVersionInfo = s.state()
	}
	return out
}

// hides reports whether a type is of a kind that says who may pass, in a version that isn't known here: that there are none
// can't be said.
func (s *store) hides(url string) bool {
	group, rest, _ := strings.Cut(url, "/")
	_, name, _ := strings.Cut(rest, "/")
	d := kind.WithIngresses.Of(object.KindOf(group, name))
	return d != nil && d.Guards && s.types[url] == nil
}
