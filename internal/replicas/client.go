package replicas

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// ClientOptions configure a Client.
type ClientOptions struct {
	// Leader returns the host:port of the leader's HTTPS server, and an empty string
	// where there is no leader, or it is this process. It is asked every second.
	Leader func() string
	// TLS is how to connect to it, called for each connection.
	TLS func() (*tls.Config, error)
	Log *slog.Logger
}

// Client sends the states that the proxies of this process report.
type Client struct {
	opts ClientOptions

	mu      sync.Mutex
	states  map[object.Name]xds.State
	pending map[object.Name]bool // Gateways whose state is to be sent
	news    chan struct{}        // has an element where pending has
}

// NewClient returns a client that keeps what it is given until Run.
func NewClient(opts ClientOptions) *Client {
	return &Client{opts: opts, states: map[object.Name]xds.State{}, pending: map[object.Name]bool{}, news: make(chan struct{}, 1)}
}

// Send takes the state of a Gateway's proxies. It never blocks.
func (c *Client) Send(gateway object.Name, state xds.State) {
	if state.Silent() {
		c.Forget(gateway)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states[gateway] = state
	c.note(gateway)
}

// Forget takes back the state of a Gateway.
func (c *Client) Forget(gateway object.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.states, gateway)
	c.note(gateway)
}

func (c *Client) note(gateway object.Name) {
	c.pending[gateway] = true
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// These are how often the leader is looked up, and how long to wait after a failure.
const (
	lookUp    = time.Second
	retry     = 200 * time.Millisecond
	retryMost = 5 * time.Second
)

// Run sends until ctx ends.
func (c *Client) Run(ctx context.Context) error {
	var failed string
	for wait := retry; ; {
		leader := c.opts.Leader()
		if leader == "" {
			failed, wait = "", retry
			if !sleep(ctx, lookUp) {
				return nil
			}
			continue
		}
		began := time.Now()
		err := c.stream(ctx, leader)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil: // there is another leader
			failed, wait = "", retry
			continue
		case errors.Is(err, errNotLeading): // its own log says what it waits for, or why it stands back
			c.opts.Log.Debug("what proxies say is kept until there is a leader", "leader", leader, "error", err)
			failed = ""
		case failed != leader:
			c.opts.Log.Warn("what proxies say can't be sent to the leader", "leader", leader, "error", err)
			failed = leader
		}
		if time.Since(began) > retryMost {
			failed, wait = "", retry
		}
		if !sleep(ctx, wait+rand.N(wait)) {
			return nil
		}
		wait = min(2*wait, retryMost)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// stream sends to one leader for as long as it is the leader. It returns nil when it
// is not any more.
func (c *Client) stream(ctx context.Context, leader string) error {
	config, err := c.opts.TLS()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	transport := &http.Transport{
		TLSClientConfig: config, TLSHandshakeTimeout: silence, Protocols: protocols, ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: heartbeat, PingTimeout: heartbeat},
	}
	defer transport.CloseIdleConnections()
	body, lines := io.Pipe()
	defer body.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+leader+Path, body)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- exchange(transport, request) }()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_ = c.send(ctx, lines) // it ends with the exchange, which has the reason
	}()

	check := time.NewTicker(lookUp)
	defer check.Stop()
	for {
		select {
		case err := <-ended:
			cancel()
			_ = body.CloseWithError(err)
			<-sent
			return err
		case <-check.C:
			if c.opts.Leader() == leader && ctx.Err() == nil {
				continue
			}
			cancel()
			_ = body.CloseWithError(context.Canceled)
			<-ended //nolint:errcheck // why it ended is known here
			<-sent
			return nil
		}
	}
}

// errNotLeading says that a replica holds the Lease and doesn't lead: it hasn't begun yet, or
// another installation has the controllerName. Nothing is lost, since all is sent when it does.
var errNotLeading = errors.New("the replica doesn't lead")

// exchange makes the request. The leader answers it only when it takes no more.
func exchange(transport http.RoundTripper, request *http.Request) error {
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusMisdirectedRequest {
		return errNotLeading
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
	if answer.StatusCode == http.StatusOK {
		return errors.New("the leader has ended the stream")
	}
	return fmt.Errorf("the leader answers %s: %s", answer.Status, text)
}

// send writes all states, then those that change.
func (c *Client) send(ctx context.Context, lines *io.PipeWriter) error {
	defer lines.Close()
	c.mu.Lock()
	for gateway := range c.states {
		c.pending[gateway] = true
	}
	c.mu.Unlock()
	to := json.NewEncoder(lines)
	if err := c.drain(to); err != nil {
		return err
	}
	if err := to.Encode(message{Complete: true}); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.news:
			err = c.drain(to)
		case <-beat.C:
			err = to.Encode(message{})
		}
		if err != nil {
			return err
		}
	}
}

// drain writes what is pending. What can't be written is sent with everything else to
// the next leader.
func (c *Client) drain(to *json.Encoder) error {
	c.mu.Lock()
	list := make([]message, 0, len(c.pending))
	for gateway := range c.pending {
		m := message{Gateway: gateway.String()}
		if state, ok := c.states[gateway]; ok {
			m.State = &state
		}
		list = append(list, m)
	}
	clear(c.pending)
	c.mu.Unlock()
	slices.SortFunc(list, func(a, b message) int { return cmp.Compare(a.Gateway, b.Gateway) })
	for _, m := range list {
		if err := to.Encode(m); err != nil {
			return err
		}
	}
	return nil
}
