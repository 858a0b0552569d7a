package echo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// shutdownGrace is how long requests in flight may go on after the context ended.
const shutdownGrace = time.Second

// maxHeaderBytes is the size limit of a request's headers.
const maxHeaderBytes = 64 << 10

// Options configures a [Server], a [TCPServer] or a [UDPServer].
type Options struct {
	// Listen holds the addresses to listen on, such as 127.0.0.1:3000; port
	// 0 picks a free one.
	Listen []string
	// Name is what the answers call this backend.
	Name string
	// TLS makes every address speak TLS (HTTP/2 by ALPN); nil is cleartext. Not
	// for UDP.
	TLS *tls.Config
	// Log takes errors of single connections of HTTP; nil discards them.
	Log *slog.Logger
}

// Server is an echo backend of HTTP and gRPC whose ports are open from the moment it exists.
type Server struct {
	name      string
	log       *Log
	http      *http.Server
	secure    bool // there is TLS; http.Server always has a TLSConfig, so that one doesn't say
	listeners []net.Listener
	// upgraded ends when the server shuts down. net/http does not track connections
	// that became WebSockets.
	upgraded context.Context
}

// Serve opens the addresses and answers until ctx ends.
func Serve(ctx context.Context, o Options) error {
	s, err := New(ctx, o)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// New opens the addresses; connections wait in the backlog until [Server.Run].
func New(ctx context.Context, o Options) (*Server, error) {
	listeners, err := listen(ctx, o.Listen)
	if err != nil {
		return nil, err
	}
	logger := o.Log
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{name: o.Name, log: newLog(), secure: o.TLS != nil, listeners: listeners}
	s.http = &http.Server{
		Handler:           s,
		TLSConfig:         o.TLS,
		Protocols:         new(http.Protocols),
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	upgraded, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.upgraded = upgraded
	s.http.RegisterOnShutdown(cancel)
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(o.TLS != nil)
	s.http.Protocols.SetUnencryptedHTTP2(o.TLS == nil)
	return s, nil
}

// Addresses returns where the server listens, in the order of Options.Listen.
func (s *Server) Addresses() []net.Addr { return addresses(s.listeners) }

// Requests returns the log of what reached this server.
func (s *Server) Requests() *Log { return s.log }

// Run answers until ctx ends, then lets requests in flight finish for a moment.
// It closes the listeners in any case and may be called once.
func (s *Server) Run(ctx context.Context) error {
	defer closeAll(s.listeners)
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range s.listeners {
		group.Go(func() error {
			var err error
			if s.secure {
				err = s.http.ServeTLS(l, "", "")
			} else {
				err = s.http.Serve(l)
			}
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			return fmt.Errorf("echo: serve on %s: %w", l.Addr(), err)
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		if err := s.http.Shutdown(grace); err != nil {
			// Connections that are still in use after the grace are cut.
			return s.http.Close()
		}
		return nil
	})
	return group.Wait()
}
