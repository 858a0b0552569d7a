package ir

import "time"

// RetryBudget limits the retries of a backend.
type RetryBudget struct {
	// Percent of the requests of the last Interval may be retries; without an Interval, of those under way.
	Percent  uint32        `json:"percent"`
	Interval time.Duration `json:"interval"`
	// Floor is how many retries may always be under way at once.
	Floor uint32 `json:"floor"`
}

// Equal reports whether two budgets are the same.
func (b RetryBudget) Equal(o RetryBudget) bool { return b == o }
