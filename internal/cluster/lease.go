package cluster

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

// lease is the lock that replicas are elected by, with how long it is ours for sure.
//
// Whoever wants it waits for leaseDuration since it has seen the last renewal, which is
// never before that renewal began: another replica begins to write leaseDuration after
// that, at the earliest. Ours writes for no longer than renewDeadline after it, which is
// less; what lies between is for requests that are under way when it stops. What
// client-go itself says doesn't suffice: it counts from the end of a renewal, which may
// be long after its beginning, waits retryPeriod more, and releases the lease before it
// tells that it is lost, which may take as long again when nothing is answered.
type lease struct {
	resourcelock.Interface
	renewDeadline time.Duration

	mu    sync.Mutex
	until time.Time     // ours for sure
	news  chan struct{} // closed when until changes
}

func newLease(lock resourcelock.Interface, renewDeadline time.Duration) *lease {
	return &lease{Interface: lock, renewDeadline: renewDeadline, news: make(chan struct{})}
}

// Create makes the lease ours.
func (l *lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.renew(r, func() error { return l.Interface.Create(ctx, r) })
}

// Update makes the lease ours, or keeps it.
func (l *lease) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.renew(r, func() error { return l.Interface.Update(ctx, r) })
}

func (l *lease) renew(r resourcelock.LeaderElectionRecord, write func() error) error {
	until := time.Now().Add(l.renewDeadline)
	if err := write(); err != nil || r.HolderIdentity != l.Identity() {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = until
	close(l.news)
	l.news = make(chan struct{})
	return nil
}

// ours returns a context that ends when the lease may be somebody else's. It waits until
// it is ours for sure; an error means that ctx has ended.
func (l *lease) ours(ctx context.Context) (context.Context, context.CancelFunc, error) {
	for {
		left, news := l.left()
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if left > 0 {
			break
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			left, _ := l.left()
			if left <= 0 {
				cancel()
				return
			}
			select {
			case <-time.After(left):
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel, nil
}

func (l *lease) left() (time.Duration, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.until), l.news
}

// release lets another replica have the lease at once.
func (l *lease) release(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		held, _, err := l.Get(ctx)
		if err != nil || held.HolderIdentity != l.Identity() {
			return err
		}
		now := metav1.Now()
		return l.Interface.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: held.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		})
	})
}
