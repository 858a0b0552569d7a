package echo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
)

var errNoAddress = errors.New("echo: no address to listen on")

// listen opens all addresses for TCP, or none.
func listen(ctx context.Context, all []string) ([]net.Listener, error) {
	if len(all) == 0 {
		return nil, errNoAddress
	}
	var listeners []net.Listener
	var lc net.ListenConfig
	for _, address := range all {
		l, err := lc.Listen(ctx, "tcp", address)
		if err != nil {
			closeAll(listeners)
			return nil, fmt.Errorf("echo: listen on %s: %w", address, err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func addresses(listeners []net.Listener) []net.Addr {
	all := make([]net.Addr, len(listeners))
	for i, l := range listeners {
		all[i] = l.Addr()
	}
	return all
}

// closeAll closes sockets, which may have been closed before.
func closeAll[T io.Closer](all []T) {
	for _, c := range all {
		_ = c.Close()
	}
}
