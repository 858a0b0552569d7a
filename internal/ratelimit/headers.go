package ratelimit

import (
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Names of the headers, as Envoy writes them.
const (
	headerLimit     = "x-ratelimit-limit"
	headerRemaining = "x-ratelimit-remaining"
	headerReset     = "x-ratelimit-reset"
	headerRetry     = "retry-after"
)

// tightest returns the index of the enforced limit that a client meets first, or -1 if
// none is enforced: one that is over before others, then the one with the least left, then
// the one that is as it is for longest.
func tightest(hits []Hit, verdicts []Verdict) int {
	best := -1
	for i := range hits {
		if hits[i].Mode != Enforced {
			continue
		}
		if best < 0 || tighter(hits, verdicts, i, best) {
			best = i
		}
	}
	return best
}

func tighter(hits []Hit, verdicts []Verdict, i, than int) bool {
	a, b := verdicts[i], verdicts[than]
	if a.Over != b.Over {
		return a.Over
	}
	// A charge that is refused for its size may leave some: what is over longest counts.
	if l, m := a.remaining(hits[i].Rate), b.remaining(hits[than].Rate); !a.Over && l != m {
		return l < m
	}
	return a.Reset > b.Reset
}

// headersOf says what draft-ietf-httpapi-ratelimit-headers-03 has for a client, of the
// tightest limit. Envoy writes the same of its own, save that it knows no other windows than
// a second, a minute, an hour and a day.
func headersOf(hits []Hit, verdicts []Verdict) []*corev3.HeaderValue {
	t := tightest(hits, verdicts)
	if t < 0 {
		return nil
	}
	h, v := &hits[t], &verdicts[t]
	var buffer [64]byte
	b := strconv.AppendUint(buffer[:0], uint64(h.Rate.Limit), 10)
	b = append(b, ", "...)
	b = strconv.AppendUint(b, uint64(h.Rate.Limit), 10)
	b = append(b, ";w="...)
	b = strconv.AppendInt(b, seconds(h.Rate.Window), 10)

	reset := strconv.FormatInt(seconds(v.Reset), 10)
	headers := make([]*corev3.HeaderValue, 0, 4)
	headers = append(headers,
		&corev3.HeaderValue{Key: headerLimit, Value: string(b)},
		&corev3.HeaderValue{Key: headerRemaining, Value: strconv.FormatUint(uint64(v.remaining(h.Rate)), 10)},
		&corev3.HeaderValue{Key: headerReset, Value: reset},
	)
	if v.Over {
		headers = append(headers, &corev3.HeaderValue{Key: headerRetry, Value: reset})
	}
	return headers
}

// seconds rounds up: who waits for that long is let through.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
