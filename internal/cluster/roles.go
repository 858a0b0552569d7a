package cluster

import (
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// A process may have the role Configuration or Infrastructure alone. Both compute everything, from what they read. What one
// role knows and the other needs goes through ConfigMaps in their namespace: see board.

// reading are the kinds that are read: fleets depend on fewer of them, and on no Secret.
func (c *Cluster) reading() *kind.Table {
	if c.config.Has(configuration.RoleConfiguration) {
		return c.kinds
	}
	return c.kinds.OfFleets()
}

// lateBy is how long a Gateway that names a new Service waits for it. Watches of an idle API server are a millisecond
// apart, those of a busy one some dozens.
const lateBy = 250 * time.Millisecond

// late is lateBy, or nothing where nobody is served: endpoints are not read there.
func (c *Cluster) late() time.Duration {
	if c.config.Has(configuration.RoleConfiguration) {
		return lateBy
	}
	return 0
}
