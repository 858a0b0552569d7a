package admin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Nobody who reaches a port may hold its connections for long.
const (
	headerTime = 5 * time.Second
	readTime   = 10 * time.Second
	idleTime   = time.Minute
	maxHeader  = 16 << 10
)

// Serve serves a listener, which it closes, until ctx ends. An answer may take as long as
// write says, from the end of the request's headers.
func Serve(ctx context.Context, lis net.Listener, handler http.Handler, write time.Duration) error {
	server := &http.Server{
		Handler: handler, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: write, IdleTimeout: idleTime,
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}
