package identity

import (
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// allowance is how many requests may be refused at once, and then in a second.
type allowance struct{ burst, rate float64 }

var (
	// Of one subject: a pod, or at an address whoever claims to be none.
	subjectAllowance = allowance{burst: 20, rate: 2}
	// Of all at an address that show no certificate. Behind it may be many, as where
	// addresses are translated.
	addressAllowance = allowance{burst: 200, rate: 20}
)

// This many subjects and addresses are remembered.
const maxPayers = 4096

// payer is whose bucket a refused request takes a token from. A certificate proves who
// asks, so a pod that has one depends on nobody else. What a token claims is not proved:
// it counts only together with the address, whose requests have a bucket of them all, too.
type payer struct {
	address netip.Addr // invalid for a pod with a certificate
	pod     string     // which the certificate names, or the token claims; empty if neither does
	all     bool       // all at the address that show no certificate
}

func (p payer) allowance() allowance {
	if p.all {
		return addressAllowance
	}
	return subjectAllowance
}

// payers returns whose buckets a request with a token takes from.
func (s *Server) payers(r *http.Request, source netip.Addr, token string) []payer {
	if gateway, pod, err := s.o.Authority.Proxy(*r.TLS); err == nil {
		return []payer{{pod: gateway.Namespace + "/" + pod}}
	}
	one := payer{address: source}
	if c, ok := readClaims(token); ok && len(c.Kubernetes.Pod.UID) <= maxUID {
		one.pod = c.Kubernetes.Pod.UID
	}
	return []payer{one, {address: source, all: true}}
}

// limiter bounds the requests that are refused, by a bucket of tokens for each payer.
type limiter struct {
	mu      sync.Mutex
	buckets map[payer]*bucket
}

type bucket struct {
	allowance
	tokens float64
	at     time.Time // when tokens was right
}

func newLimiter() *limiter { return &limiter{buckets: map[payer]*bucket{}} }

// allow removes a token from the bucket of each payer, or none if one of them is empty.
func (l *limiter) allow(payers []payer, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range payers {
		if b := l.buckets[p]; b != nil && b.fill(now) < 1 {
			return false
		}
	}
	for _, p := range payers {
		b := l.buckets[p]
		if b == nil {
			if len(l.buckets) >= maxPayers {
				l.forget(now)
			}
			b = &bucket{allowance: p.allowance(), tokens: p.allowance().burst, at: now}
			l.buckets[p] = b
		}
		b.tokens--
	}
	return true
}

// granted puts the tokens back that allow removed: a request that is granted does not
// count.
func (l *limiter) granted(payers []payer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range payers {
		if b := l.buckets[p]; b != nil {
			b.tokens++
		}
	}
}

// fill adds what time has brought, and returns how many tokens there are.
func (b *bucket) fill(now time.Time) float64 {
	b.tokens = min(b.burst, b.tokens+b.rate*now.Sub(b.at).Seconds())
	b.at = now
	return b.tokens
}

// forget makes room. It removes the payers whose buckets are full again, and any others
// if that is not enough.
func (l *limiter) forget(now time.Time) {
	for p, b := range l.buckets {
		if b.fill(now) >= b.burst {
			delete(l.buckets, p)
		}
	}
	for p := range l.buckets {
		if len(l.buckets) < maxPayers {
			return
		}
		delete(l.buckets, p)
	}
}
