package lastgood

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

const (
	// StandInAfter is how long an Envoy that starts waits for a control plane.
	StandInAfter = 3 * time.Second
	// writeEvery bounds how often the file is written, and how much newer what Envoy has
	// may be.
	writeEvery = 5 * time.Second
	// settled is how long nothing must have changed before the file is written, unless
	// changes never end.
	settled = time.Second
	// settledAtMost is when it is written nevertheless.
	settledAtMost = 30 * time.Second
)

// Options say whose configuration it is, and where it is kept.
type Options struct {
	Gateway string // namespace/name
	Envoy   string // its version
	// File is where it is kept, if that is in memory. Its directory is made by others.
	File string
	Log  *slog.Logger
}

// resources are those of one type, by name.
type resources map[string]*discoveryv3.Resource

// state is a whole configuration. It is not changed once it is made.
type state struct {
	at    time.Time
	types map[string]resources // by the type's URL
}

func (s *state) len() (n int) {
	for _, set := range s.types {
		n += len(set)
	}
	return n
}

// Keeper keeps one Envoy's last good configuration. New makes one.
type Keeper struct {
	o Options

	mu       sync.Mutex
	has      map[string]resources // what Envoy has acknowledged, by the type's URL
	unknown  bool                 // Envoy has something that is not in has
	envoy    Envoy
	waits    time.Time // since when Envoy asks for its first configuration
	changed  time.Time // has, last
	unsaved  time.Time // since when good is older than has; zero if it is not
	talk     *talk     // the latest
	good     *state    // nil if there is none
	standsIn time.Time // since when Envoy has its configuration from here
	wrote    time.Time
	failed   bool // the last write
}

// New returns a keeper of nothing; see Load.
func New(o Options) *Keeper { return &Keeper{o: o, has: map[string]resources{}} }

// Envoy is how the process is.
type Envoy struct {
	PID  int
	Live bool // it has its first configuration
}

// Tell tells how Envoy is.
func (k *Keeper) Tell(e Envoy) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e.PID != k.envoy.PID || e.Live {
		k.waits = time.Time{}
	}
	if e.PID != k.envoy.PID && k.envoy.PID != 0 {
		clear(k.has) // another process, which has nothing yet
	}
	k.envoy = e
}

// Live reports whether Envoy has its first configuration.
func (k *Keeper) Live() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.envoy.Live
}

// Wait returns how much longer an Envoy that asks for its first configuration is to wait for a
// control plane; false where it has one already, or where none is kept.
func (k *Keeper) Wait() (time.Duration, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.envoy.Live || k.good == nil {
		return 0, false
	}
	if k.waits.IsZero() {
		k.waits = time.Now()
	}
	return max(0, StandInAfter-time.Since(k.waits)), true
}

// Report is what is kept, and whether it is served.
type Report struct {
	KeptAt      time.Time      `json:"keptAt,omitzero"`      // when Envoy was found to have it
	ServedSince time.Time      `json:"servedSince,omitzero"` // zero while a control plane answers
	Resources   map[string]int `json:"resources,omitempty"`  // by type
}

// Report describes the keeper.
func (k *Keeper) Report() Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := Report{ServedSince: k.standsIn}
	if k.good != nil {
		r.KeptAt, r.Resources = k.good.at, map[string]int{}
		for url, set := range k.good.types {
			r.Resources[url] = len(set)
		}
	}
	return r
}

// lose notes that what Envoy has can't be followed.
func (k *Keeper) lose(err error) {
	k.mu.Lock()
	k.unknown = true
	k.mu.Unlock()
	k.o.Log.Warn("what passes between envoy and the control plane can't be read; "+
		"what is kept as last good stays as it is until envoy starts again", "error", err)
}

// talk is one stream of discovery.
type talk struct {
	keeper  *Keeper
	asked   map[string]bool // types, by URL
	pending map[string]*discoveryv3.DeltaDiscoveryResponse
	// before are the responses that the stream before had not seen answered. Envoy may have taken them.
	before map[string]*discoveryv3.DeltaDiscoveryResponse
}

func (k *Keeper) begin() *talk {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := &talk{keeper: k, asked: map[string]bool{}, pending: map[string]*discoveryv3.DeltaDiscoveryResponse{}}
	if k.talk != nil {
		next.before = k.talk.pending
	}
	k.talk = next
	k.unknown = false // it names what it has
	return k.talk
}

// back notes that Envoy talks with a control plane.
func (k *Keeper) back() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.standsIn.IsZero() {
		k.standsIn = time.Time{}
		k.o.Log.Info("a control plane is back; envoy goes on from its last good configuration")
	}
}

func (t *talk) response(m *discoveryv3.DeltaDiscoveryResponse) {
	t.keeper.mu.Lock()
	defer t.keeper.mu.Unlock()
	t.pending[m.GetNonce()] = m
}

func (t *talk) request(m *discoveryv3.DeltaDiscoveryRequest) {
	k := t.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if t != k.talk {
		return
	}
	url := m.GetTypeUrl()
	if !t.asked[url] {
		t.asked[url] = true
		t.resume(url, m.GetInitialResourceVersions())
	}
	if nonce := m.GetResponseNonce(); nonce != "" {
		response := t.pending[nonce]
		delete(t.pending, nonce)
		// Of a response that is refused, the control plane sends again what is not at fault.
		if m.GetErrorDetail() == nil && response != nil {
			k.acknowledged(url, response)
		}
	}
	for _, name := range m.GetResourceNamesUnsubscribe() {
		k.remove(url, name)
	}
}

// resume forgets what Envoy has not, by what it names at the beginning of a stream.
func (t *talk) resume(url string, versions map[string]string) {
	k := t.keeper
	before, now := k.has[url], resources{}
	for _, m := range t.before {
		if m.GetTypeUrl() != url {
			continue
		}
		for _, r := range m.GetResources() {
			if versions[r.GetName()] == r.GetVersion() {
				now[r.GetName()] = r
				k.touch()
			}
		}
	}
	for name, version := range versions {
		if now[name] != nil {
			continue
		}
		if r := before[name]; r != nil && r.GetVersion() == version {
			now[name] = r
		} else {
			k.unknown = true
		}
	}
	k.has[url] = now
	if len(now) != len(before) {
		k.touch()
	}
}

func (k *Keeper) acknowledged(url string, m *discoveryv3.DeltaDiscoveryResponse) {
	for _, r := range m.GetResources() {
		k.has[url][r.GetName()] = r
	}
	for _, name := range m.GetRemovedResources() {
		delete(k.has[url], name)
	}
	if len(m.GetResources())+len(m.GetRemovedResources()) > 0 {
		k.touch()
	}
}

func (k *Keeper) remove(url, name string) {
	if k.has[url][name] != nil {
		delete(k.has[url], name)
		k.touch()
	}
}

func (k *Keeper) touch() {
	k.changed = time.Now()
	if k.unsaved.IsZero() {
		k.unsaved = k.changed
	}
}

// Run keeps what Envoy has acknowledged until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(settled / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if s := k.snapshot(now); s != nil {
				k.write(s)
			}
		}
	}
}

// snapshot makes what Envoy has the last good configuration, if it is time; nil otherwise.
func (k *Keeper) snapshot(now time.Time) *state {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unsaved.IsZero() || !k.envoy.Live || k.unknown || !k.standsIn.IsZero() || now.Sub(k.wrote) < writeEvery {
		return nil
	}
	quiet := len(k.talk.pending) == 0 && now.Sub(k.changed) >= settled
	if !quiet && now.Sub(k.unsaved) < settledAtMost {
		return nil
	}
	for url, set := range k.has {
		if len(set) > 0 && !k.talk.asked[url] { // a stream that has just begun
			return nil
		}
	}
	s := &state{at: now, types: map[string]resources{}}
	for url := range k.talk.asked {
		s.types[url] = maps.Clone(k.has[url])
	}
	k.good, k.wrote, k.unsaved = s, now, time.Time{}
	return s
}
