//go:build !linux

package proxy

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// processIdentity is the start time of the process, which ps knows on every
// Unix, to the second.
func processIdentity(pid int) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-o", "lstart=", "-p", fmt.Sprint(pid)).Output()
	started := strings.TrimSpace(string(out))
	if err != nil || started == "" {
		return "", errGone
	}
	return started, nil
}

// peer: Linux alone has one way to ask who listens at the other end of a Unix socket.
func peer(net.Conn) int { return 0 }

// processAlive does not ask ps ten times a second; the identity was checked
// when the process was taken up.
func processAlive(p *os.Process, _ string) bool {
	return p.Signal(syscall.Signal(0)) == nil
}

// awaitEnd returns when a process has ended that is not our child.
func awaitEnd(p *os.Process, identity string) { watchAlive(p, identity) }

// raiseFileLimit: only Linux can change the limits of another process.
func raiseFileLimit(int) error { return nil }

// mainThread: only Linux tells it of another process's thread.
func mainThread(int) (used time.Duration, runnable bool) { return 0, false }
