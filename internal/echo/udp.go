package echo

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"
)

// maxDatagram is the most that UDP can carry.
const maxDatagram = 64 << 10

// UDPServer is a backend that answers each datagram with a [Line].
type UDPServer struct {
	name    string
	sockets []net.PacketConn
}

// NewUDP opens the addresses of o; datagrams wait until [UDPServer.Run].
func NewUDP(ctx context.Context, o Options) (*UDPServer, error) {
	if len(o.Listen) == 0 {
		return nil, errNoAddress
	}
	s := &UDPServer{name: o.Name}
	var lc net.ListenConfig
	for _, address := range o.Listen {
		c, err := lc.ListenPacket(ctx, "udp", address)
		if err != nil {
			closeAll(s.sockets)
			return nil, fmt.Errorf("echo: listen on %s: %w", address, err)
		}
		s.sockets = append(s.sockets, c)
	}
	return s, nil
}

// Addresses returns where the server listens, in the order of Options.Listen.
func (s *UDPServer) Addresses() []net.Addr {
	all := make([]net.Addr, len(s.sockets))
	for i, c := range s.sockets {
		all[i] = c.LocalAddr()
	}
	return all
}

// Run answers until ctx ends. It may be called once.
func (s *UDPServer) Run(ctx context.Context) error {
	defer closeAll(s.sockets)
	defer context.AfterFunc(ctx, func() { closeAll(s.sockets) })()
	var group errgroup.Group
	for _, c := range s.sockets {
		group.Go(func() error {
			buffer := make([]byte, maxDatagram)
			for {
				n, from, err := c.ReadFrom(buffer)
				if errors.Is(err, net.ErrClosed) {
					return nil
				}
				if err != nil {
					return fmt.Errorf("echo: read on %s: %w", c.LocalAddr(), err)
				}
				// An answer that can't be sent is lost, as datagrams may be.
				_, _ = c.WriteTo([]byte(Line{Name: s.name, Text: string(buffer[:n])}.String()), from)
			}
		})
	}
	return group.Wait()
}
