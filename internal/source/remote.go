package source

import "time"

// Remote says how it is with a config server.
type Remote struct {
	Address string `json:"address"`
	// Current is true while what is in force is what the server has.
	Current bool `json:"current"`
	// AsOf is when it last was; zero for never.
	AsOf    time.Time `json:"asOf,omitzero"`
	Version string    `json:"version,omitempty"` // of the state, as the server names it
	Objects int       `json:"objects"`
	Error   string    `json:"error,omitempty"` // why it can't be asked
}

// Age is how old what is in force is: 0 while it is the server's.
func (r Remote) Age(now time.Time) time.Duration {
	if r.Current || r.AsOf.IsZero() {
		return 0
	}
	return max(0, now.Sub(r.AsOf))
}
