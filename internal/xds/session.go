package xds

import (
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// session is one proxy's stream. Everything below is guarded by the gateway's
// mutex; one goroutine sends.
type session struct {
	id        uint64
	gateway   *gateway
	connected time.Time
	node      string
	pod       string // by its certificate
	envoy     string // its version, as it says
	// certificateEnds is when the first certificate of its chain expires.
	certificateEnds time.Time
	wake            chan struct{} // has room for one: there may be something to send
	timers          []*time.Timer

	types    []subscription // by envoy.Type
	nonce    uint64
	inflight map[uint64]*flight
	// mostInflight is how many there have been since the map was made.
	mostInflight int
	// unanswered are the nonces of extensions, listeners and routes without an answer, in order.
	// Removals wait for them.
	unanswered []uint64
	// removing is what the proxy should no longer have, each with the last nonce of
	// listeners and routes that has to be answered before.
	removing map[Ref]uint64
	restamp  bool // after a refusal: all removals wait for what is sent next too
	// refused is the version of a resource that this proxy has refused last. It is not sent
	// again unless something has changed.
	refused    map[Ref]string
	doubtful   map[Ref]struct{}  // whose record has unknownVersion
	alone      map[Ref]bool      // resources that are sent in a response of their own
	awaited    map[Ref]*awaiting // what sent resources wait for
	awaitTimer *time.Timer       // fires when the wait for one of them ends
	dirty      time.Time         // since when something waits to be sent
	charged    int               // what unknown names count for
	answeredAt time.Time         // when everything was answered for the first time
	// behind says what the proxy lacks of the newest configuration, and has lacked for long;
	// empty where nothing.
	behind string
	// changes counts what may have changed what the proxy has, and hashes are those of that count and the
	// Gateway's commit.
	changes     uint64
	hashes      hashes
	behindTimer *time.Timer
	// resumed says that the proxy had listeners when it connected, and named that all that it has beside them has
	// been looked at. namedRoutes is when it asked for routes first.
	resumed, named bool
	namedRoutes    time.Time
	// otherForms is State.OtherForms of this proxy, until it has been taken in, by takenUntil.
	otherForms map[string]bool
	takenUntil time.Time
	spares     spares
}

// subscription is what a session knows about one type.
type subscription struct {
	*resourceType
	started  bool               // the proxy has asked for the type
	wildcard bool               // and for all of it
	owed     bool               // it must get a response, if an empty one: it has nothing of the type yet
	records  map[string]*record // of what is not settled
	most     int                // how many there have been since the map was made
	settled  slotSet
	dirty    map[string]reason
	// mostDirty is how many there have been since the map was made.
	mostDirty int
	spelled   spellings
	denied    map[string]struct{} // names to be answered with "does not exist"
	pushed    uint64              // resources sent
	acked     uint64              // resources acknowledged
	nacks     uint64
	lastNack  *Nack
}

// record is one resource as the proxy has it. There are several for each route, so that each field counts.
type record struct {
	sent       string    // version that it has, or that is on its way
	acked      string    // version that it has acknowledged, or has named when it connected
	nonce      uint64    // of the response that sent it last, until that is answered
	first      uint64    // of the response that sent it first: older ones were of another resource of the name
	subscribed bool      // by name
	early      bool      // sent before the proxy had asked for the type: it may have dropped it
	charged    bool      // the name counts, see charge
	warming    bool      // refused when it was new: Envoy may have it among those that warm
	takesOver  bool      // of what has been wanted since it was sent, something does, see takeover.go
	carries    *[]uint64 // the marks of what it had before another version was wanted
}

// reason says why a resource is marked. A greater one replaces a smaller one.
type reason uint8

const (
	_       reason = iota
	changed        // is sent unless the proxy has this version
	forced         // is sent, asked for or not: it belongs to a resource that has just been sent
	asked          // is answered, also if it does not exist
)

// flight is a response without an answer.
type flight struct {
	typ        envoy.Type
	nonce      uint64
	set        []*envoy.Resource
	removed    []string
	current    int    // how many of set no newer response has replaced
	remembered bool   // its names are among the leftovers
	several    bool   // other proxies are connected
	filler     bool   // set has what stands for a resource that does not exist
	passing    int    // what names count for that have been forgotten since
	commit     uint64 // when the resources were picked
	since      time.Time
}

// A proxy that never answers must not cost more than its names. Envoy answers listeners and
// routes at once: when so many answers are missing, a session sends nothing more, and
// changes merge meanwhile.
const maxUnanswered = 64

// The answer to clusters may take long, and nothing waits for it. When there are more
// responses without an answer, those that newer ones have replaced are forgotten, and their
// answers are ignored.
const maxReplaced = 256

func newSession(g *gateway, id uint64, now time.Time) *session {
	s := &session{
		id:        id,
		gateway:   g,
		connected: now,
		wake:      make(chan struct{}, 1),
		types:     make([]subscription, len(g.server.types)),
		inflight:  map[uint64]*flight{},
		removing:  map[Ref]uint64{},
		refused:   map[Ref]string{},
		alone:     map[Ref]bool{},
	}
	for t := range s.types {
		s.types[t].resourceType = &g.server.types[t]
		s.types[t].records = map[string]*record{}
		s.types[t].dirty = map[string]reason{}
	}
	s.notifyAfter(g.server.grace)
	return s
}

// fewEntries is what a map may go on having room for: more would cost more than all else that is kept of
// a proxy.
const fewEntries = 8

// notify makes the session send what there is to send.
func (s *session) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *session) notifyAfter(d time.Duration) {
	s.timers = append(s.timers, time.AfterFunc(d, s.notify))
}

func (s *session) close() {
	s.gateway.detach(s)
	for _, t := range s.timers {
		t.Stop()
	}
	if s.awaitTimer != nil {
		s.awaitTimer.Stop()
	}
	if s.behindTimer != nil {
		s.behindTimer.Stop()
	}
	if s.spares.timer != nil {
		s.spares.timer.Stop()
	}
}

// mark makes the next plan decide on a resource.
func (s *session) mark(ref Ref, why reason, now time.Time) {
	y := &s.types[ref.Type]
	y.dirty[ref.Name] = max(y.dirty[ref.Name], why)
	y.mostDirty = max(y.mostDirty, len(y.dirty))
	if s.dirty.IsZero() {
		s.dirty = now
	}
}

// unmark forgets a resource that the proxy never had.
func (s *session) unmark(ref Ref) { delete(s.types[ref.Type].dirty, ref.Name) }

// markType marks everything of a type that concerns the session.
func (s *session) markType(t envoy.Type, now time.Time) {
	y := &s.types[t]
	for name, r := range s.each(t) {
		if r.sent == "" {
			s.mark(Ref{t, name}, asked, now)
		} else {
			s.mark(Ref{t, name}, changed, now)
		}
	}
	if !y.wildcard {
		return
	}
	for name := range s.gateway.entries[t] {
		s.mark(Ref{t, name}, changed, now)
	}
	for ref := range s.gateway.removals {
		if ref.Type == t {
			s.mark(ref, changed, now)
		}
	}
}

func (s *session) markAll(now time.Time) {
	for t := range s.types {
		s.markType(envoy.Type(t), now) //nolint:gosec // an index of the types' array
	}
}

// doubt records that the proxy may or may not have a resource.
func (s *session) doubt(ref Ref, r *record) {
	r.sent = unknownVersion
	if s.doubtful == nil {
		s.doubtful = map[Ref]struct{}{}
	}
	s.doubtful[ref] = struct{}{}
}

// record returns the session's record of a resource, a new one if need be.
func (s *session) record(ref Ref) *record {
	r := s.found(ref)
	if r == nil {
		r = &record{}
		y := &s.types[ref.Type]
		y.records[ref.Name] = r
		y.most = max(y.most, len(y.records))
		s.charge(r, ref)
	}
	return r
}
