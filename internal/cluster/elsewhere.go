package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-dev/gatehouse/internal/loop"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// lockState makes a directory for states of config servers, and keeps other processes from it as long as this one runs: two
// would write over each other. Several servers may share one.
func (c *Cluster) lockState(dir string) error {
	if dir == "" || c.stateDirs[dir] != nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return fmt.Errorf("stateDir %s of a remote source is in use by another process: give each replica one of its own: %w", dir, err)
	}
	c.stateDirs[dir] = f
	return nil
}

// unlockStates lets other processes have them, and this one's next controller.
func (c *Cluster) unlockStates() {
	for _, f := range c.stateDirs {
		_ = f.Close()
	}
}

// reports tells config servers what has become of their objects.
func (c *Cluster) reports() loop.Observer {
	r := &loop.Reports{Loop: func() *loop.Loop { return c.loop }, To: map[int]loop.Reporter{}}
	for i, of := range c.remotes {
		if of != nil {
			r.To[i] = of
		}
	}
	return r
}

// elsewhere says how it is with config servers and member clusters.
func (c *Cluster) elsewhere() (out []source.Remote) {
	for _, r := range c.remotes {
		if r != nil {
			out = append(out, r.State())
		}
	}
	if c.members != nil {
		out = append(out, c.members.States()...)
	}
	return out
}
