// Package port hands out TCP ports to those who must know a port before they listen on
// it: a process that is started with its port as an argument, a configuration.
//
// A port that was free a moment ago is anybody's: the next outgoing connection may get it,
// or a test of another package. The ports of this package lie below those that a kernel
// hands out, and each is held until this process ends, by a lock that other processes see.
package port

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The ports are below those of outgoing connections, and beside those that the tests
// lift their listeners to.
const first, last = 21000, 29999

// held are the locks of this process; nobody gives one back.
var held struct {
	sync.Mutex
	files []*os.File
}

// Free returns a port that nobody listens on, at any address of this machine. Nobody else
// gets it from this package until this process ends.
func Free() (int, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("gatehouse-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	held.Lock()
	defer held.Unlock()
	const count = last - first + 1
	for start, n := rand.IntN(count), 0; n < count; n++ {
		port := first + (start+n)%count
		lock, err := lock(filepath.Join(dir, strconv.Itoa(port)))
		if errors.Is(err, syscall.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return 0, err
		}
		held.files = append(held.files, lock)
		if free(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port between %d and %d is free", first, last)
}

// OfTest returns a port that nobody else gets for the time of a test.
func OfTest(t testing.TB) int {
	t.Helper()
	n, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// AddressOfTest returns an address of the loopback with a port that nobody else gets for
// the time of a test.
func AddressOfTest(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(OfTest(t)))
}

// lock takes a lock that the kernel gives back when this process ends.
func lock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// free says whether nobody listens on a port. A process that this one is just starting has
// a copy of each socket until its program begins, and would listen for that long after the
// socket is closed here: none starts meanwhile.
func free(port int) bool {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	return err == nil && l.Close() == nil
}

// Listen listens at an address that this process may have listened at before. Also after
// its Close a socket listens for as long as a process that was being started meanwhile has
// a copy of it, which is waited for.
func Listen(t testing.TB, address string) net.Listener {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		l, err := net.Listen("tcp", address)
		if err == nil {
			return l
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
