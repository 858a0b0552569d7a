package xds

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	// Proxies connect to another replica now and then, so that replicas share them. A proxy
	// that does keeps what it has: nothing is sent again.
	defaultMaxAge = time.Hour

	// A pod has one connection, or two while it replaces one that hangs.
	maxConnections = 4

	// Envoy has one stream, and for a moment a second one, and as many for figures.
	maxStreams = 4

	handshakeTimeout = 10 * time.Second

	// A pod that is gone loses its connections within this time, whoever has its key.
	defaultAdmitInterval = 30 * time.Second
	admitTimeout         = 5 * time.Second

	// How long a proxy waits for a Gateway that this replica does not know, before its
	// connection is cut, so that it tries another one.
	defaultUnknownTimeout = 30 * time.Second
)

// TLS says whose proxies may connect, and when their connections end.
type TLS struct {
	// Config must demand certificates and verify them.
	Config *tls.Config

	// Identify returns the Gateway and the pod that a verified certificate names, or why it
	// is refused.
	Identify func(tls.ConnectionState) (gateway object.Name, pod string, err error)
	// Revision is the one of its fleet that a pod is of; nil where there are none.
	Revision func(pod string) string
	// Admit says why a pod of a Gateway may not connect from an address, or not stay
	// connected; nil for no such check. It is called for each connection, and again every
	// AdmitInterval, 30 s if zero. It must return soon after the context has ended.
	Admit         Admission
	AdmitInterval time.Duration
	// AdmitAgain returns what takes the place of Admit for one round of those calls, so that one
	// reading answers for many connections; Admit does if it is nil.
	AdmitAgain func() Admission
	// Changed returns a channel that is closed when Identify has to be called again for all
	// open connections.
	Changed func() <-chan struct{}

	// MaxAge is how long a connection lasts at most, one hour if zero. Each lasts at least
	// half of it, unless its certificate expires.
	MaxAge time.Duration
}

// Admission is TLS.Admit.
type Admission func(ctx context.Context, gateway object.Name, pod string, source netip.Addr) error

// ServeTLS serves every Gateway's configuration to the Gateway's proxies. The certificate
// alone tells whose proxy it is; one whose node names another Gateway is refused. A
// connection ends when its certificate expires. ServeTLS closes the listener and returns
// nil when the context ends or the server stops.
func (s *Server) ServeTLS(ctx context.Context, lis net.Listener, o TLS) error {
	if o.MaxAge == 0 {
		o.MaxAge = defaultMaxAge
	}
	if o.AdmitInterval == 0 {
		o.AdmitInterval = defaultAdmitInterval
	}
	c := &connections{
		TransportCredentials: credentials.NewTLS(o.Config),
		server:               s,
		o:                    o,
		pods:                 map[podKey][]*connection{},
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var rechecks sync.WaitGroup
	changed := o.Changed()
	rechecks.Go(func() { c.recheck(ctx, changed) })
	if o.Admit != nil {
		rechecks.Go(func() { c.admitAgain(ctx) })
	}
	defer rechecks.Wait()
	defer cancel()
	err := s.serve(ctx, lis, &discovery{server: s},
		grpc.Creds(c), grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(handshakeTimeout),
		grpc.ReadBufferSize(0)) // TLS has a buffer of its own
	if err != nil {
		return fmt.Errorf("serve xDS: %w", err)
	}
	return nil
}

// connections are those of ServeTLS. They are made by it, as transport credentials.
type connections struct {
	credentials.TransportCredentials
	server *Server
	o      TLS

	mu   sync.Mutex
	pods map[podKey][]*connection // the oldest first
}

// podKey names a pod of a Gateway's fleet.
type podKey struct {
	gateway object.Name
	name    string
}

// connection is an open connection.
type connection struct {
	net.Conn
	credentials.TLSInfo
	all     *connections
	gateway object.Name
	pod     string
	end     *time.Timer
}

// revision is that of the proxy's pod.
func (c *connection) revision() string {
	if c.all.o.Revision == nil {
		return ""
	}
	return c.all.o.Revision(c.pod)
}

// AuthType is part of the credentials' contract.
func (c *connection) AuthType() string { return "tls" }

// ServerHandshake accepts or refuses a connection.
func (c *connections) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		if !errors.Is(err, io.EOF) { // a probe of the port
			c.server.refusals.add(refusedHandshake, "source", raw.RemoteAddr().String(), "error", err)
		}
		return nil, nil, err
	}
	t := info.(credentials.TLSInfo)
	gateway, pod, err := c.o.Identify(t.State)
	if err != nil {
		c.server.refusals.add(refusedCertificate, "source", raw.RemoteAddr().String(), "error", err)
		_ = conn.Close()
		return nil, nil, err
	}
	if err := c.admit(context.Background(), c.o.Admit, gateway, pod, raw.RemoteAddr()); err != nil {
		c.server.refusals.add(refusedPod, "gateway", gateway.String(), "pod", pod, "source", raw.RemoteAddr().String(), "error", err)
		_ = conn.Close()
		return nil, nil, err
	}
	open := &connection{Conn: conn, TLSInfo: t, all: c, gateway: gateway, pod: pod}
	c.add(open)
	// A change between the two calls was not checked for this connection.
	if _, _, err := c.o.Identify(t.State); err != nil {
		open.cut(refusedCertificate, "error", err)
		return nil, nil, err
	}
	return open, open, nil
}

// Clone is part of the credentials' contract.
func (c *connections) Clone() credentials.TransportCredentials { return c }

func (c *connections) add(open *connection) {
	now := time.Now()
	age := c.o.MaxAge/2 + rand.N(c.o.MaxAge/2+1)
	why := ""
	if left := open.expires().Sub(now); left < age {
		age, why = left, refusedExpired
	}
	c.mu.Lock()
	open.end = time.AfterFunc(age, func() { open.cut(why) })
	name := podKey{open.gateway, open.pod}
	pods := append(c.pods[name], open)
	c.pods[name] = pods
	c.mu.Unlock()
	if len(pods) > maxConnections {
		pods[0].cut(refusedConnections)
	}
}

// expires returns when the first of the proxy's certificates ends.
func (c *connection) expires() (first time.Time) {
	for _, cert := range c.State.VerifiedChains[0] {
		if first.IsZero() || cert.NotAfter.Before(first) {
			first = cert.NotAfter
		}
	}
	return first
}

// Close ends the connection.
func (c *connection) Close() error {
	all := c.all
	all.mu.Lock()
	c.end.Stop()
	name := podKey{c.gateway, c.pod}
	pods := all.pods[name]
	for i, open := range pods {
		if open == c {
			pods = append(pods[:i:i], pods[i+1:]...)
			break
		}
	}
	if len(pods) == 0 {
		delete(all.pods, name)
	} else {
		all.pods[name] = pods
	}
	all.mu.Unlock()
	return c.Conn.Close()
}

// cut ends the connection. A reason that is not empty is logged and counted.
func (c *connection) cut(why string, args ...any) {
	if why != "" {
		c.all.server.refusals.add(why, append([]any{
			"gateway", c.gateway.String(), "pod", c.pod, "source", c.RemoteAddr().String(),
		}, args...)...)
	}
	_ = c.Close()
}

// recheck cuts the connections that would no longer be accepted.
func (c *connections) recheck(ctx context.Context, changed <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		changed = c.o.Changed()
		for _, open := range c.open() {
			if _, _, err := c.o.Identify(open.State); err != nil {
				open.cut(refusedCertificate, "error", err)
			}
		}
	}
}

// admit asks whether a pod may be connected from an address.
func (c *connections) admit(ctx context.Context, by Admission, gateway object.Name, pod string, from net.Addr) error {
	if by == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, admitTimeout)
	defer cancel()
	source, err := netip.ParseAddrPort(from.String())
	if err != nil {
		return fmt.Errorf("address %s: %w", from, err)
	}
	return by(ctx, gateway, pod, source.Addr().Unmap())
}

// admitAgain cuts the connections of pods that may not be connected any more.
func (c *connections) admitAgain(ctx context.Context) {
	tick := time.NewTicker(c.o.AdmitInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		by := c.o.Admit
		if c.o.AdmitAgain != nil {
			by = c.o.AdmitAgain()
		}
		for _, open := range c.open() {
			if err := c.admit(ctx, by, open.gateway, open.pod, open.RemoteAddr()); err != nil && ctx.Err() == nil {
				open.cut(refusedPod, "error", err)
			}
		}
	}
}

func (c *connections) open() []*connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*connection
	for _, pods := range c.pods {
		out = append(out, pods...)
	}
	return out
}

// connectionOf returns the connection of a stream that came by ServeTLS.
func connectionOf(ctx context.Context) (*connection, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, status.Error(codes.Unauthenticated, "there is no certificate")
	}
	c, ok := p.AuthInfo.(*connection)
	if !ok {
		return nil, status.Error(codes.Unauthenticated, "there is no certificate")
	}
	return c, nil
}

// checkNode refuses a node that names another Gateway. The node is not used for anything,
// but a proxy that names a false one is not served.
func (c *connection) checkNode(node *corev3.Node) error {
	for _, named := range []string{node.GetId(), node.GetCluster()} {
		if named == "" {
			continue
		}
		ours := c.gateway.String()
		if named == ours || strings.HasPrefix(named, ours+"/") {
			continue
		}
		c.all.server.refusals.add(refusedNode, "gateway", ours, "pod", c.pod, "source", c.RemoteAddr().String(),
			"claimed", bounded(named))
		return status.Errorf(codes.PermissionDenied, "the certificate is for Gateway %s, and the node says %q", c.gateway, bounded(named))
	}
	return nil
}

// bounded makes what a proxy sends fit to be logged and shown.
func bounded(s string) string {
	const most = 300
	return printable(shortened(strings.ToValidUTF8(s, "?"), most))
}
