package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// backend is a server on loopback that says which of them it is.
type backend struct {
	name   string
	port   int
	server *http.Server
}

func startBackend(ctx context.Context, name string) (*backend, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &backend{name: name, port: listener.Addr().(*net.TCPAddr).Port}
	b.server = &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Backend", name)
			w.WriteHeader(http.StatusOK)
		}),
	}
	go func() {
		if err := b.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // the figures would be those of a broken backend
		}
	}()
	return b, nil
}

func (b *backend) stop() { _ = b.server.Close() }

// freePort returns a TCP port on loopback that nobody listens on.
func freePort(ctx context.Context) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}
