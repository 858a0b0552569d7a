package cluster

import (
	"github.com/gatehouse-dev/gatehouse/internal/loop"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

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
