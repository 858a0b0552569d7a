package replicas

import (
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// Path is where a Handler is to be served, for POST requests.
const Path = "/v1/feedback"

// message is a line of a stream, in JSON. An empty one shows that the sender is still
// there.
type message struct {
	Gateway string     `json:"gateway,omitempty"` // namespace/name
	State   *xds.State `json:"state,omitempty"`   // nil: there is nothing to say of the Gateway any more
	// Complete says that all Gateways have had their line once.
	Complete bool `json:"complete,omitempty"`
}

// gateway returns the Gateway that a message is about; zero where it is about none.
func (m *message) gateway() (object.Name, error) {
	if m.Gateway == "" {
		return object.Name{}, nil
	}
	gateway, ok := object.ParseName(m.Gateway)
	if !ok {
		return object.Name{}, fmt.Errorf("a message is about the Gateway %q, which is not NAMESPACE/NAME", m.Gateway)
	}
	return gateway, nil
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
