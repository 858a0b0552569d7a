package configserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote/wire"
)

// session is one client's. The store's lock is for its types.
type session struct {
	rights   Rights
	admitted func() error // whether it still is
	log      *slog.Logger
	types    map[string]*subscription // by type URL
	wake     chan struct{}
	nonce    uint64
	known    int // resources that it has said it has
}

// subscription is what a client is to be told of a kind.
type subscription struct {
	pending    map[string]struct{} // names of resources
	unanswered bool                // an answer is due, be it empty
}

// note notes that an object has changed. The caller holds the store's lock.
func (c *session) note(of *published, url string, name object.Name) {
	if sub := c.types[url]; sub != nil && c.rights.sees(of.Kind, name) {
		sub.pending[wire.Name(name)] = struct{}{}
	}
}

func (c *session) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

type stream = grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]

const (
	// maxTypes bounds the kinds that a client may ask for, known or not, and maxName their names and those of resources.
	maxTypes = 200
	maxName  = 600
	// maxKnown bounds how many resources a client may say that it has.
	maxKnown = 1_000_000
	// admitEvery is how soon a client is told to go whose token or certificate isn't taken any more.
	admitEvery = time.Minute
)

// converse tells a client what changes until it leaves.
func (s *Server) converse(stream stream, c *session) error {
	s.store.enter(c)
	defer s.store.leave(c)
	requests, failed := receive(stream.Context(), stream.Recv)
	again := time.NewTicker(admitEvery)
	defer again.Stop()
	for {
		select {
		case <-s.ending:
			return status.Error(codes.Unavailable, "the config server is stopping")
		case <-again.C:
			if err := c.admitted(); err != nil {
				return err
			}
			continue
		case <-stream.Context().Done():
			return stream.Context().Err()
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case request := <-requests:
			if err := s.handle(c, request); err != nil {
				return err
			}
			continue // a client that connects asks for all kinds before it is answered
		case <-c.wake:
		}
		for _, response := range s.store.take(c) {
			c.nonce++
			response.Nonce = strconv.FormatUint(c.nonce, 10)
			if err := stream.Send(response); err != nil {
				return err
			}
			s.metrics.sent(response)
		}
	}
}

// receive hands over what a stream brings, until that ends, and why it does.
func receive[M any](ctx context.Context, next func() (M, error)) (<-chan M, <-chan error) {
	out, failed := make(chan M), make(chan error, 1)
	go func() {
		for {
			m, err := next()
			if err != nil {
				failed <- err
				return
			}
			select {
			case out <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, failed
}

// handle takes in what a client says.
func (s *Server) handle(c *session, r *discoveryv3.DeltaDiscoveryRequest) error {
	if e := r.GetErrorDetail(); e != nil {
		s.metrics.refused.Inc()
		c.log.Warn("a client can't use what it was sent", "type", r.GetTypeUrl(), "message", bounded(e.GetMessage()))
	}
	for _, name := range append(r.GetResourceNamesSubscribe(), r.GetResourceNamesUnsubscribe()...) {
		if name != "*" {
			return status.Error(codes.InvalidArgument, "resources are not subscribed to by their names: subscribe to *, all of a type")
		}
	}
	url := r.GetTypeUrl()
	if len(r.GetResourceNamesUnsubscribe()) > 0 {
		return status.Error(codes.InvalidArgument, "a subscription ends with its stream")
	}
	if r.GetResponseNonce() != "" && len(r.GetResourceNamesSubscribe()) == 0 {
		return nil // an acknowledgement
	}
	if url == "" {
		return status.Error(codes.InvalidArgument, "type_url is empty: name a kind as group/version/Kind")
	}
	switch {
	case len(url) > maxName:
		return status.Errorf(codes.InvalidArgument, "type_url has more than %d bytes", maxName)
	case c.types[url] != nil:
		return status.Errorf(codes.InvalidArgument, "type %s is subscribed to twice", url)
	case len(c.types) >= maxTypes:
		return status.Errorf(codes.ResourceExhausted, "more than %d types", maxTypes)
	case s.store.hides(url):
		return status.Errorf(codes.FailedPrecondition, "%s is not known in this version, and says who may pass: the config server and its client have to be of versions that know it", url)
	}
	if c.known += len(r.GetInitialResourceVersions()); c.known > maxKnown {
		return status.Errorf(codes.ResourceExhausted, "more than %d resources", maxKnown)
	}
	for name := range r.GetInitialResourceVersions() {
		if len(name) > maxName {
			return status.Errorf(codes.InvalidArgument, "the name of a resource has more than %d bytes", maxName)
		}
	}
	s.store.subscribe(c, url, r.GetInitialResourceVersions())
	c.wakeUp()
	return nil
}

// maxMessage bounds what is logged of a client's words.
const maxMessage = 2000

func bounded(text string) string {
	if len(text) > maxMessage {
		return text[:maxMessage] + "…"
	}
	return text
}
