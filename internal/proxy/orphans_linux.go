package proxy

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// orphanInterval is how long a process that has ended may wait to be reaped.
const orphanInterval = 5 * time.Second

// ReapOrphans reaps processes that have ended and that nobody else reaps, until ctx
// ends. The first process of a container becomes the parent of all whose own parent has
// ended, such as those of a shell that somebody ran in it. In any other process it
// returns at once. No other child than an Envoy may be started meanwhile.
func ReapOrphans(ctx context.Context) {
	if os.Getpid() != 1 {
		return
	}
	tick := time.NewTicker(orphanInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			children.reapOthers()
		}
	}
}

// reapOthers reaps our children that have ended, except those whose end a Wait must
// learn.
func (f *family) reapOthers() {
	f.mu.Lock()
	defer f.mu.Unlock()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && !f.pids[pid] && isOurZombie(pid) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

func isOurZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The name in parentheses may contain anything; state and parent follow it.
	_, rest, found := bytes.CutLast(stat, []byte(") "))
	return found && bytes.HasPrefix(rest, fmt.Appendf(nil, "Z %d ", os.Getpid()))
}
