package cluster

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// lockState makes a directory for states of config servers, and keeps other processes from it as long as this one runs: two
// would write over each other. Several servers may share one. Where another process has it, such as the pod that this one is
// to replace, nothing is kept: it returns no directory then.
func (c *Cluster) lockState(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	dir = filepath.Clean(dir)
	if c.stateDirs[dir] != nil {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		c.log.Warn("the stateDir of a config server is in use by another process, so its state is not kept by this one; give each replica a directory of its own",
			"state_dir", dir, "error", err)
		return "", nil
	}
	c.stateDirs[dir] = f
	return dir, nil
}

// unlockStates lets other processes have them, and this one's next controller.
func (c *Cluster) unlockStates() {
	for _, f := range c.stateDirs {
		_ = f.Close()
	}
}

// endReports leaves it to another replica.
func (c *Cluster) endReports() {
	for _, r := range c.remotes {
		if r != nil {
			r.ForgetReports()
		}
	}
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
