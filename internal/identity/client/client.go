package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// A request that is not answered in this time is given up.
	askTimeout = 10 * time.Second

	// Pauses between requests that fail, with some chance in each.
	firstPause = 250 * time.Millisecond
	lastPause  = 30 * time.Second

	// A controller that refuses a certificate that is still valid has changed its
	// authority; asking more often than this would not mend it.
	refusedPause = 5 * time.Second

	// How often the authorities' file is looked at: the kubelet replaces it.
	fileInterval = 5 * time.Second

	dialTimeout = 5 * time.Second

	// A replica that stands still is not waited for: so much later the connection is
	// tried for again, while the first try goes on.
	dialAgain  = 1500 * time.Millisecond
	dialRacers = 3
)

// Options say where the controller is, and how each knows the other.
type Options struct {
	// API and XDS are the controller's addresses, as host:port.
	API, XDS string
	// ServerName is what the controller's certificate must be for; the host of API
	// if empty.
	ServerName string
	// TokenFile has the pod's token. It is read anew for each request, since the
	// kubelet replaces it.
	TokenFile string
	// CAFile has the authorities that the controller is trusted by, in PEM.
	CAFile string
	// Log gets refusals and renewals; slog.Default if nil.
	Log *slog.Logger
}

// Client keeps a valid certificate at hand.
type Client struct {
	o       Options
	log     *slog.Logger
	metrics *metrics

	ready chan struct{} // closed when there is a certificate
	early chan struct{} // has room for one: the certificate should be renewed now

	mu          sync.Mutex
	authorities *authorities
	current     *tls.Certificate
}

// New returns a client, which has no certificate before Run.
func New(o Options) (*Client, error) {
	host, _, err := net.SplitHostPort(o.API)
	if err != nil {
		return nil, fmt.Errorf("the controller's address %q: %w", o.API, err)
	}
	if _, _, err := net.SplitHostPort(o.XDS); err != nil {
		return nil, fmt.Errorf("the controller's address %q: %w", o.XDS, err)
	}
	if o.ServerName == "" {
		o.ServerName = host
	}
	c := &Client{
		o:       o,
		log:     o.Log,
		metrics: newMetrics(),
		ready:   make(chan struct{}),
		early:   make(chan struct{}, 1),
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	return c, nil
}

// Collectors returns the client's metrics.
func (c *Client) Collectors() []prometheus.Collector { return c.metrics.all() }

// Ready is closed when the first certificate is there.
func (c *Client) Ready() <-chan struct{} { return c.ready }

// Run gets a certificate and renews it until the context ends.
func (c *Client) Run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		err := c.renew(ctx)
		switch {
		case err == nil:
			pause = firstPause
			c.rest(ctx)
		case ctx.Err() != nil:
			return
		default:
			c.log.Warn("no certificate from the controller; trying again", "controller", c.o.API, "error", err)
			sleep(ctx, pause/2+rand.N(pause))
			pause = min(2*pause, lastPause)
		}
	}
}

// rest waits until the certificate is to be renewed: when two thirds of its life
// are over, or as soon as nobody trusts it any more.
func (c *Client) rest(ctx context.Context) {
	life := time.Until(c.notAfter())
	// The chance keeps proxies that started together from asking together.
	renew := time.NewTimer(life*2/3 - rand.N(max(life/15, 1)))
	defer renew.Stop()
	look := time.NewTicker(fileInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-renew.C:
			return
		case <-c.early:
			c.log.Info("the controller refuses our certificate; asking for another", "controller", c.o.API)
			sleep(ctx, refusedPause/2+rand.N(refusedPause))
			c.calm()
			return
		case <-look.C:
			if !c.trusted() {
				c.log.Info("the authority of our certificate is gone; asking for another", "controller", c.o.API)
				return
			}
		}
	}
}

// trusted reports whether the authorities' file still has the one that signed our
// certificate. A file that can't be read changes nothing.
func (c *Client) trusted() bool {
	roots, err := c.roots()
	if err != nil {
		c.log.Warn("the controller's authorities can't be read", "error", err)
		return true
	}
	c.mu.Lock()
	leaf := c.current.Leaf
	c.mu.Unlock()
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	var unknown x509.UnknownAuthorityError
	return !errors.As(err, &unknown)
}

// calm forgets refusals from before the certificate that comes next.
func (c *Client) calm() {
	select {
	case <-c.early:
	default:
	}
}

func (c *Client) notAfter() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Leaf.NotAfter
}

// certificate waits for a certificate.
func (c *Client) certificate(ctx context.Context) (*tls.Certificate, error) {
	select {
	case <-c.ready:
	case <-ctx.Done():
		return nil, fmt.Errorf("there is no certificate yet: %w", ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current, nil
}

func (c *Client) use(cert *tls.Certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		close(c.ready)
	}
	c.current = cert
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
