package replicas

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// HandlerOptions configure a Handler.
type HandlerOptions struct {
	// Replica returns the name of the replica that makes a request, or an error that
	// says why it may not.
	Replica func(*http.Request) (string, error)
	// Leads says whether this process is the leader. If it is not, requests are
	// refused.
	Leads func() bool
	// Said is called with what a replica says of a Gateway's proxies. The zero State
	// means that it has nothing to say any more. Calls for one replica come one after
	// the other. Said may block, but if it does so for long, the stream ends.
	Said func(replica string, gateway object.Name, state xds.State)
	// Gone is called with a replica that is gone. What it said is void.
	Gone func(replica string)
	Log  *slog.Logger
}

// Handler receives what other replicas say.
type Handler struct {
	opts HandlerOptions

	mu       sync.Mutex
	replicas map[string]*replica
}

// replica is one that has said something.
type replica struct {
	gateways map[object.Name]bool // of which it has said something; only the stream that holds turn changes it
	turn     chan struct{}        // has an element while no stream holds it
	cancel   context.CancelFunc
	streams  int // open ones, and those that wait for turn
}

// NewHandler returns a handler for POST requests to Path, over HTTP/2.
func NewHandler(opts HandlerOptions) *Handler {
	return &Handler{opts: opts, replicas: map[string]*replica{}}
}

// ServeHTTP reads a stream until it ends.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, err := h.opts.Replica(r)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	case !h.opts.Leads():
		http.Error(w, "this replica doesn't lead", http.StatusMisdirectedRequest)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	who := h.enter(name, cancel)
	defer h.leave(name, who)
	select {
	case <-who.turn: // an older stream of the replica has ended
	case <-ctx.Done():
		return
	}
	defer func() { who.turn <- struct{}{} }()
	control := http.NewResponseController(w)
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_ = control.SetReadDeadline(time.Now())
	})
	defer func() {
		if !stop() {
			<-woken // the response must not be touched when it has ended
		}
	}()
	if err := h.read(ctx, control, r.Body, name, who); err != nil && ctx.Err() == nil {
		h.opts.Log.Warn("a replica's stream has ended", "replica", name, "error", err)
	}
}

// enter notes a new stream, which ends the older one of the same replica.
func (h *Handler) enter(name string, cancel context.CancelFunc) *replica {
	h.mu.Lock()
	defer h.mu.Unlock()
	who := h.replicas[name]
	if who == nil {
		who = &replica{gateways: map[object.Name]bool{}, turn: make(chan struct{}, 1)}
		who.turn <- struct{}{}
		h.replicas[name] = who
	}
	if who.cancel != nil {
		who.cancel()
	}
	who.cancel = cancel
	who.streams++
	return who
}

// leave records the end of a stream, and forgets the replica if it doesn't come back.
func (h *Handler) leave(name string, who *replica) {
	h.mu.Lock()
	defer h.mu.Unlock()
	who.streams--
	time.AfterFunc(grace, func() { h.forget(name, who) })
}

func (h *Handler) forget(name string, who *replica) {
	if !h.absent(who) {
		return
	}
	<-who.turn // who comes back now speaks after this
	if h.absent(who) && len(who.gateways) > 0 {
		clear(who.gateways)
		h.opts.Gone(name)
	}
	who.turn <- struct{}{}
	h.mu.Lock()
	defer h.mu.Unlock()
	if who.streams == 0 && h.replicas[name] == who {
		delete(h.replicas, name)
	}
}

func (h *Handler) absent(who *replica) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return who.streams == 0
}

// read receives the lines of a stream.
func (h *Handler) read(ctx context.Context, control *http.ResponseController, body io.Reader, name string, who *replica) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	mentioned := map[object.Name]bool{}
	for {
		if ctx.Err() != nil || !h.opts.Leads() {
			return nil
		}
		if err := control.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		if !lines.Scan() {
			return lines.Err()
		}
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		gateway, err := m.gateway()
		if err != nil {
			return err
		}
		switch {
		case m.Complete:
			for before := range who.gateways {
				if !mentioned[before] {
					delete(who.gateways, before)
					h.opts.Said(name, before, xds.State{})
				}
			}
		case gateway.IsZero():
		case m.State == nil:
			delete(who.gateways, gateway)
			h.opts.Said(name, gateway, xds.State{})
		default:
			mentioned[gateway], who.gateways[gateway] = true, true
			h.opts.Said(name, gateway, *m.State)
		}
	}
}
