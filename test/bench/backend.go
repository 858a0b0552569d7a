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
	ports  []int
	server *http.Server
}

// backendPorts is how many ports a backend listens on. Envoy keeps a connection
// for each route and worker, and the system has fewer than 30,000 ports for the
// connections to any one of ours.
const backendPorts = 16

func startBackend(ctx context.Context, name string) (*backend, error) {
	b := &backend{name: name}
	b.server = &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Backend", name)
			w.WriteHeader(http.StatusOK)
		}),
	}
	for range backendPorts {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, b.server.Close())
		}
		b.ports = append(b.ports, listener.Addr().(*net.TCPAddr).Port)
		go func() {
			if err := b.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				panic(err) // the figures would be those of a broken backend
			}
		}()
	}
	return b, nil
}

// keep decides whether connections are kept open after an answer. They are where
// the system has room: Envoy keeps one for each route and worker, and a closed
// one costs nothing but the time to open the next.
func (b *backend) keep(room bool) { b.server.SetKeepAlivesEnabled(room) }

// port returns the port for a route.
func (b *backend) port(index int) int { return b.ports[index%len(b.ports)] }

func (b *backend) stop() { _ = b.server.Close() }
