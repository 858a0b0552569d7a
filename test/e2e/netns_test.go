//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// ownNetwork is a network namespace with nothing but a loopback device.
type ownNetwork struct{ name string }

// newNetwork makes one for the time of the test; nil where that takes more rights than there are.
func newNetwork(t *testing.T) *ownNetwork {
	t.Helper()
	n := &ownNetwork{fmt.Sprintf("gh-e2e-%d-%d", os.Getpid(), nextLoopback.Add(1))}
	if text, err := exec.CommandContext(t.Context(), "ip", "netns", "add", n.name).CombinedOutput(); err != nil {
		t.Logf("there is no second network: %v %s", err, text)
		return nil
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", n.name).Run() })
	if text, err := exec.CommandContext(t.Context(), "ip", "-n", n.name, "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, text)
	}
	return n
}

// wrapped is a program that runs in the network.
func (n *ownNetwork) wrapped(t *testing.T, program string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(program))
	script := fmt.Sprintf("#!/bin/sh\nexec nsenter --net=/var/run/netns/%s '%s' \"$@\"\n", n.name, program)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// dial connects within the network.
func (n *ownNetwork) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	n.within(func() { conn, err = (&net.Dialer{Timeout: callTimeout}).DialContext(ctx, network, address) }, &err)
	return conn, err
}

// listen listens within the network, for the time of the test at most.
func (n *ownNetwork) listen(t *testing.T, address string) (lis net.Listener) {
	t.Helper()
	var err error
	n.within(func() { lis, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address) }, &err)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lis.Close() })
	return lis
}

// within calls a function within the network, and says in err why it can't.
func (n *ownNetwork) within(do func(), err *error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine, and its network with it
		there, failed := os.Open("/var/run/netns/" + n.name)
		if failed != nil {
			*err = failed
			return
		}
		defer there.Close()
		if failed := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); failed != nil {
			*err = os.NewSyscallError("setns", failed)
			return
		}
		do()
	}()
	<-done
}
