// Package descriptor says how a request tells the rate limit service what to count and
// how many of it to let through.
//
// A descriptor's entries are, in this order:
//
//	limit   the name of the limit: its policy, target and the index of its rate
//	rate    how many in which window, such as 100/10s (Rate)
//	shadow  "true", or no such entry: the limit is counted and refuses nothing
//	charge  "true", or no such entry: the hits have been used already, such as the tokens
//	        of an answer that has ended. They are added even beyond the limit, and refuse nothing
//	…       what is counted by: any other keys, with values of up to MaxValue bytes
//
// All entries but rate, shadow and charge together name a count. So a limit keeps its counts when
// its rate is changed.
//
// The translation writes descriptors and the service reads them. This package is what both
// share: it imports nothing of ours and none of Envoy's protos.
package descriptor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The keys of a descriptor's first entries. No counter may have one of them.
const (
	KeyLimit  = "limit"
	KeyRate   = "rate"
	KeyShadow = "shadow"
	KeyCharge = "charge"

	// On is the only value of the entries KeyShadow and KeyCharge.
	On = "true"
)

// Domain is that of all requests.
const Domain = "gatehouse"

// Bounds of a request. One beyond them is refused as a whole.
const (
	// MaxDescriptors is how many limits and rates a request can be counted by: more than
	// policies of all levels together have.
	MaxDescriptors = 1024
	// MaxEntries is how many entries a descriptor has at most, those of the limit included.
	MaxEntries = 20
	// MaxName bounds a limit's name, in bytes.
	MaxName = 1024
	// MaxKey and MaxValue bound what is counted by, in bytes.
	MaxKey   = 256
	MaxValue = 256
)

// Bounds of a Rate.
const (
	MaxLimit  = 1_000_000_000
	MinWindow = time.Second
	MaxWindow = 31 * 24 * time.Hour
)

// A Rate is how many are let through in a window, which begins with the first.
type Rate struct {
	Limit  uint32        // 1 to MaxLimit
	Window time.Duration // MinWindow to MaxWindow, whole milliseconds
}

// String returns the value of the entry KeyRate, such as 100/10s.
func (r Rate) String() string {
	return strconv.FormatUint(uint64(r.Limit), 10) + "/" + r.Window.String()
}

// Errors of ParseRate and Validate.
var (
	errForm   = errors.New("a rate is a limit and a window, such as 100/10s")
	errLimit  = fmt.Errorf("a limit is 1 to %d", MaxLimit)
	errWindow = fmt.Errorf("a window is whole milliseconds from %s to %s", MinWindow, MaxWindow)
)

// Validate says what is wrong with a rate.
func (r Rate) Validate() error {
	if r.Limit < 1 || r.Limit > MaxLimit {
		return errLimit
	}
	if r.Window < MinWindow || r.Window > MaxWindow || r.Window%time.Millisecond != 0 {
		return errWindow
	}
	return nil
}

// ParseRate reads what String returns.
func ParseRate(s string) (Rate, error) {
	limit, window, ok := strings.Cut(s, "/")
	// The longest of what String returns is some thirty bytes.
	if !ok || len(s) > 64 {
		return Rate{}, errForm
	}
	n, err := strconv.ParseUint(limit, 10, 32)
	if err != nil {
		if errors.Is(err, strconv.ErrRange) {
			return Rate{}, errLimit
		}
		return Rate{}, errForm
	}
	w, err := time.ParseDuration(window)
	if err != nil {
		return Rate{}, errForm
	}
	r := Rate{Limit: uint32(n), Window: w}
	return r, r.Validate()
}
