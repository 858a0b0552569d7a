//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
)

// Each run takes a random /16 of 127.0.0.0/8 for its listeners, so that runs at
// the same time don't meet on a port.
var (
	loopbackNet  = 10 + rand.IntN(200)
	nextLoopback atomic.Uint32
)

// newAddress returns a loopback address that no other test uses.
func newAddress() string {
	n := nextLoopback.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", loopbackNet, n/250, 1+n%250)
}

// portOffset is what the tests pass as --port-offset: it lifts the well-known
// ports over 1024 and leaves all of them below the ephemeral range.
const portOffset = 12000

// refusingPort returns a port of 127.0.0.1 that refuses connections for the
// time of the test: it is bound, so nobody else gets it, and nobody listens.
func refusingPort(t testing.TB) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	inet, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		t.Fatalf("a socket name of type %T", name)
	}
	return inet.Port
}

// occupy listens on address until the returned function is called.
func occupy(t *testing.T, address string) func() {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	release := func() { _ = l.Close() }
	t.Cleanup(release)
	return release
}
