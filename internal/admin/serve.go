package admin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Serve serves until ctx ends.
func Serve(ctx context.Context, address string, handler http.Handler) error {
	lis, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
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
