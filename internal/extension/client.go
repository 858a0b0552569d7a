package extension

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	extensionv1alpha1 "github.com/gatehouse-dev/gatehouse/api/extension/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	// maxCalls is how many calls of a server may be under way.
	maxCalls = 16
	// mostFailures is after how many calls in a row without an answer a server counts as away.
	mostFailures = 4
	// firstProbe and lastProbe are how long after that it is asked again, the one question that had no answer.
	firstProbe = 250 * time.Millisecond
	lastProbe  = 5 * time.Second
)

// silentError is why there is no answer: the server can't be asked, or didn't say anything in time. What it says, be it an
// error, is an answer.
type silentError struct{ err error }

func (e *silentError) Error() string { return "the server does not answer: " + e.err.Error() }
func (e *silentError) Unwrap() error { return e.err }

// client asks one server.
type client struct {
	Options
	conn    *grpc.ClientConn
	log     *slog.Logger
	metrics *metrics
	calls   chan struct{}
	// anew is called when the server may answer otherwise than before, again when it answers what it had said nothing of.
	anew, again func()
	lost        chan struct{} // has something when a question had no answer

	mu       sync.Mutex
	failures int
	away     error // why it is; nil while it isn't
	// unanswered are questions that had no answer, by what they are about, and answered is one that had; nil for none.
	unanswered map[subjectOf]*unanswered
	answered   *extensionv1alpha1.ChangeRequest
}

// unanswered is a question that had no answer.
type unanswered struct {
	question *extensionv1alpha1.ChangeRequest
	probes   int // how often it was asked since
}

// subjectOf is what a question is about.
type subjectOf struct {
	gateway object.Name
	hook    extensionv1alpha1.Hook
	name    string
}

func subjectOfQuestion(q *extensionv1alpha1.ChangeRequest) subjectOf {
	return subjectOf{object.Name{Namespace: q.GetGateway().GetNamespace(), Name: q.GetGateway().GetName()}, q.GetHook(), q.GetName()}
}

// maxUnanswered bounds what is kept of questions without an answer.
const maxUnanswered = 1024

func newClient(o Options, log *slog.Logger, m *metrics, anew, again func()) (*client, error) {
	conn, err := o.dial()
	if err != nil {
		return nil, err
	}
	return &client{Options: o, conn: conn, log: log.With("extension", o.Name), metrics: m, calls: make(chan struct{}, maxCalls), anew: anew, again: again, lost: make(chan struct{}, 1),
		unanswered: map[subjectOf]*unanswered{}}, nil
}

// ask returns the answer to a question.
func (c *client) ask(ctx context.Context, q *extensionv1alpha1.ChangeRequest) (*extensionv1alpha1.ChangeResponse, error) {
	select {
	case c.calls <- struct{}{}:
		defer func() { <-c.calls }()
	case <-ctx.Done():
		return nil, &silentError{ctx.Err()}
	}
	if away := c.awayFor(q); away != nil {
		return nil, away
	}
	a, err := c.call(ctx, q)
	c.note(q, err)
	return a, err
}

// awayFor returns why a question can't be asked; nil where it can.
func (c *client) awayFor(q *extensionv1alpha1.ChangeRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away != nil {
		c.keep(q)
	}
	return c.away
}

// keep has a question asked later. c.mu is held.
func (c *client) keep(q *extensionv1alpha1.ChangeRequest) {
	of := subjectOfQuestion(q)
	if known := c.unanswered[of]; known != nil {
		known.question = q
		return
	}
	for other := range c.unanswered { // any makes room: once one has an answer all are asked again
		if len(c.unanswered) < maxUnanswered {
			break
		}
		delete(c.unanswered, other)
	}
	c.unanswered[of] = &unanswered{question: q}
	select {
	case c.lost <- struct{}{}:
	default:
	}
}

func (c *client) call(ctx context.Context, q *extensionv1alpha1.ChangeRequest) (*extensionv1alpha1.ChangeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	began := time.Now()
	a, err := extensionv1alpha1.NewExtensionClient(c.conn).Change(ctx, q)
	c.metrics.seconds.WithLabelValues(c.Name).Observe(time.Since(began).Seconds())
	if err == nil {
		return a, nil
	}
	said := status.Convert(err)
	text := errors.New(shortened(said.Message()))
	switch said.Code() { //nolint:exhaustive // all others are what a server says
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return nil, &silentError{text}
	}
	return nil, fmt.Errorf("the server answers %s: %w", said.Code(), text)
}

// maxText bounds what is told of errors.
const maxText = 256

func shortened(text string) string {
	if len(text) > maxText {
		return text[:maxText] + "…"
	}
	return text
}

// there reports whether the server answers, but for single questions.
func (c *client) there() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away == nil && c.answered != nil
}

// note decides whether the server is away. What has had no answer for long doesn't count: of others it may say something.
func (c *client) note(q *extensionv1alpha1.ChangeRequest, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := subjectOfQuestion(q)
	if _, silent := errors.AsType[*silentError](err); !silent {
		c.failures, c.answered = 0, q
		delete(c.unanswered, of)
		return
	}
	if _, known := c.unanswered[of]; !known {
		c.failures++
	}
	c.keep(q)
	if c.away != nil || c.failures < mostFailures && c.conn.GetState() == connectivity.Ready {
		return
	}
	c.away = err
	c.metrics.away.WithLabelValues(c.Name).Set(1)
	c.log.Warn("the extension server is away; resources are served without it, or as they were", "error", err)
}

// returned notes that the server answers, and has it asked.
func (c *client) returned(ask func()) {
	c.mu.Lock()
	if c.away != nil {
		c.log.Info("the extension server answers again")
		c.metrics.away.WithLabelValues(c.Name).Set(0)
	}
	c.away, c.failures = nil, 0
	c.mu.Unlock()
	ask()
}

// run keeps the connection until ctx ends.
func (c *client) run(ctx context.Context) {
	defer func() { _ = c.conn.Close() }()
	go c.probe(ctx)
	c.conn.Connect()
	had := false
	for state := c.conn.GetState(); ; state = c.conn.GetState() {
		switch state {
		case connectivity.Idle:
			c.conn.Connect()
		case connectivity.Ready:
			// A server that has started anew may have another opinion.
			c.mu.Lock()
			away := c.away != nil
			c.mu.Unlock()
			if had || away {
				go c.returned(c.anew) // which waits for others, and the connection may be lost meanwhile
			}
			had = true
		case connectivity.Connecting, connectivity.TransientFailure, connectivity.Shutdown:
		}
		if !c.conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// probe asks a server that is connected what it had no answer for, one after the other, from time to time.
func (c *client) probe(ctx context.Context) {
	for {
		select {
		case <-c.lost:
		case <-ctx.Done():
			return
		}
		for wait := firstProbe; ; wait = min(2*wait, lastProbe) {
			select {
			case <-time.After(wait):
			case <-c.lost:
				wait = firstProbe / 2
				continue
			case <-ctx.Done():
				return
			}
			q := c.toProbe()
			if q == nil {
				break
			}
			if c.conn.GetState() != connectivity.Ready {
				continue
			}
			var silent *silentError
			if _, err := c.call(ctx, q); !errors.As(err, &silent) {
				c.mu.Lock()
				delete(c.unanswered, subjectOfQuestion(q))
				c.mu.Unlock()
				c.returned(c.again)
				wait = firstProbe / 2
			}
		}
	}
}

// toProbe is the question without an answer that was asked least often, or, while the server is away, sometimes one that has had
// an answer; nil for none.
func (c *client) toProbe() *extensionv1alpha1.ChangeRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away != nil && c.answered != nil && rand.IntN(2) == 0 { //nolint:gosec // no secret
		return c.answered
	}
	var least *unanswered
	for _, u := range c.unanswered {
		if least == nil || u.probes < least.probes {
			least = u
		}
	}
	if least != nil {
		least.probes++
		return least.question
	}
	if c.away != nil {
		return c.answered
	}
	return nil
}
