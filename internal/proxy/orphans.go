package proxy

import (
	"os/exec"
	"sync"
)

// children are the processes whose end a Wait of ours must learn.
var children = family{pids: map[int]bool{}}

type family struct {
	mu   sync.Mutex
	pids map[int]bool
}

// start keeps orphans from being looked for until the new child is known.
func (f *family) start(cmd *exec.Cmd) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	f.pids[cmd.Process.Pid] = true
	return nil
}

func (f *family) ended(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pids, pid)
}
