package replicas

import (
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// Path is where a Handler is to be served, for POST requests.
const Path = "/v1/feedback"

// message is a line of a stream, in JSON. An empty one shows that the sender is still
// there.
type message struct {
	Gateway string     `json:"gateway,omitempty"`
	State   *xds.State `json:"state,omitempty"` // nil: there is nothing to say of the Gateway any more
	// Complete says that all Gateways have had their line once.
	Complete bool `json:"complete,omitempty"`
}

const (
	// heartbeat is how often a sender without news shows that it is there.
	heartbeat = 4 * time.Second
	// silence is after how long without a line a sender counts as gone.
	silence = 3 * heartbeat
	// grace is how long what a replica said still counts after the replica is gone. Its
	// proxies connect to another one in this time.
	grace = 10 * time.Second
	// maxLine bounds a line, in bytes: a state has a few hundred for each listener and
	// refusal.
	maxLine = 16 << 20
)
