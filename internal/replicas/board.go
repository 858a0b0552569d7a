package replicas

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/fleet"
)

// ProxiesPath is where a Board is to be served, for GET requests of other replicas.
const ProxiesPath = "/v1/proxies"

// Board shows the other replicas what this one says of its proxies. A request waits until that is another than the
// sender knows.
type Board struct {
	mu      sync.Mutex
	list    fleet.List
	version uint64
	changed chan struct{} // closed by the next change
}

// NewBoard returns a board with no proxies.
func NewBoard() *Board {
	return &Board{version: rand.Uint64() | 1, changed: make(chan struct{})} // of this process: never 0
}

// Set says what is true now.
func (b *Board) Set(list fleet.List) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sameList(b.list, list) {
		return
	}
	b.list = list
	b.version++
	close(b.changed)
	b.changed = make(chan struct{})
}

func sameList(a, b fleet.List) bool {
	if a.Replica != b.Replica || len(a.Proxies) != len(b.Proxies) {
		return false
	}
	for i := range a.Proxies {
		if !a.Proxies[i].Same(&b.Proxies[i]) {
			return false
		}
	}
	return true
}

// List returns what is shown, and what is closed when that changes.
func (b *Board) List() (fleet.List, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list, b.changed
}

// answer is what a Board says to a request with known, the version that the sender has.
type answer struct {
	Version uint64      `json:"version"`
	List    *fleet.List `json:"list,omitempty"` // nil where that is the newest
}

// boardWait is how long a request waits for news.
const boardWait = 5 * time.Second

// ServeHTTP answers a request.
func (b *Board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	known, _ := strconv.ParseUint(r.URL.Query().Get("known"), 10, 64)
	wait := time.NewTimer(boardWait)
	defer wait.Stop()
	a, changed := b.since(known)
	for ended := false; a.List == nil && !ended; a, changed = b.since(known) {
		select {
		case <-changed:
		case <-wait.C:
			ended = true
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // who asked is gone
}

// since returns the answer to who knows a version, and what is closed when there is another.
func (b *Board) since(known uint64) (answer, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := answer{Version: b.version}
	if known != b.version {
		list := b.list
		a.List = &list
	}
	return a, b.changed
}

// Reader reads the boards of other replicas.
type Reader struct {
	tls func() (*tls.Config, error)
	log *slog.Logger

	running sync.WaitGroup
	mu      sync.Mutex
	boards  map[string]*board // by host:port
	changed chan struct{}     // has an element when a list is another
}

// board is that of another replica.
type board struct {
	cancel context.CancelFunc
	list   *fleet.List // nil where nothing is known
	asked  bool        // it has answered, or failed to
}

// NewReader returns a reader that reads nothing before Set. config is how to connect, called for each connection.
func NewReader(config func() (*tls.Config, error), log *slog.Logger) *Reader {
	return &Reader{tls: config, log: log, boards: map[string]*board{}, changed: make(chan struct{}, 1)}
}

// Set says where the other replicas are, as host:port. Their boards are read until ctx ends, or they are no longer named.
func (r *Reader) Set(ctx context.Context, addresses map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for address, b := range r.boards {
		if !addresses[address] {
			b.cancel()
			delete(r.boards, address)
			r.note()
		}
	}
	for address := range addresses {
		if r.boards[address] == nil {
			ctx, cancel := context.WithCancel(ctx)
			b := &board{cancel: cancel}
			r.boards[address] = b
			r.running.Go(func() { r.follow(ctx, address, b) })
		}
	}
}

// Lists returns what the other replicas say. known is false while one of them has not been asked yet.
func (r *Reader) Lists() (lists []fleet.List, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known = true
	for b := range maps.Values(r.boards) {
		if b.list != nil {
			lists = append(lists, *b.list)
		}
		known = known && b.asked
	}
	return lists, known
}

// Wait returns when nothing is read any more.
func (r *Reader) Wait() { r.running.Wait() }

// Changed gets an element when Lists are others.
func (r *Reader) Changed() <-chan struct{} { return r.changed }

func (r *Reader) note() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// follow reads one board until ctx ends. What it said is void some time after it has gone.
func (r *Reader) follow(ctx context.Context, address string, b *board) {
	tell := func(list *fleet.List) {
		r.mu.Lock()
		defer r.mu.Unlock()
		b.list, b.asked = list, true
		r.note()
	}
	var transport *http.Transport // anew after each failure: certificates are renewed
	var known uint64
	heard, failed, wait := time.Now(), "", retry
	for ctx.Err() == nil {
		a, err := answer{}, error(nil)
		if transport == nil {
			transport, err = r.transport()
		}
		if err == nil {
			a, err = ask(ctx, transport, address, known)
		}
		if err == nil {
			if a.List != nil {
				tell(a.List)
			}
			known, heard, failed, wait = a.Version, time.Now(), "", retry
			continue
		}
		if transport != nil {
			transport.CloseIdleConnections()
			transport = nil
		}
		if ctx.Err() != nil {
			return
		}
		if failed != err.Error() {
			r.log.Debug("what proxies of another replica are like can't be asked; trying again", "replica", address, "error", err)
			failed = err.Error()
		}
		if known == 0 || time.Since(heard) > grace {
			known = 0
			tell(nil)
		}
		if !sleep(ctx, wait+rand.N(wait)) {
			return
		}
		wait = min(2*wait, retryMost)
	}
	if transport != nil {
		transport.CloseIdleConnections()
	}
}

func (r *Reader) transport() (*http.Transport, error) {
	config, err := r.tls()
	if err != nil {
		return nil, err
	}
	return &http.Transport{TLSClientConfig: config, TLSHandshakeTimeout: silence, ForceAttemptHTTP2: true, IdleConnTimeout: silence}, nil
}

func ask(ctx context.Context, transport *http.Transport, address string, known uint64) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, boardWait+silence)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+ProxiesPath+"?known="+strconv.FormatUint(known, 10), nil)
	if err != nil {
		return a, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return a, fmt.Errorf("it answers %s: it may be of an older version", response.Status)
	}
	return a, json.NewDecoder(io.LimitReader(response.Body, maxBoard)).Decode(&a)
}

// maxBoard bounds an answer, in bytes: a proxy has a few hundred, and a refusal more.
const maxBoard = 64 << 20
