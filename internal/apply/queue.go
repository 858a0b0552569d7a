package apply

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/workqueue"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	workers    = 4
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// gatewayQueue has the Gateways for which there is something to do. One that fails is tried again, later each time.
type gatewayQueue struct {
	workqueue.TypedRateLimitingInterface[object.Name]
	log    *slog.Logger
	failed string // what the log says then
}

func newGatewayQueue(log *slog.Logger, failed string) *gatewayQueue {
	return &gatewayQueue{workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[object.Name](firstRetry, lastRetry)), log, failed}
}

// start has workers of a group sync Gateways until the queue is shut down.
func (q *gatewayQueue) start(ctx context.Context, group *errgroup.Group, sync func(context.Context, object.Name) error) {
	for range workers {
		group.Go(func() error {
			for q.next(ctx, sync) {
			}
			return nil
		})
	}
}

// next works on one Gateway; false when there will be no more.
func (q *gatewayQueue) next(ctx context.Context, sync func(context.Context, object.Name) error) bool {
	gateway, quit := q.Get()
	if quit {
		return false
	}
	defer q.Done(gateway)
	err := sync(ctx, gateway)
	if err == nil || ctx.Err() != nil {
		q.Forget(gateway)
		return true
	}
	q.AddRateLimited(gateway)
	q.log.Warn(q.failed, "gateway", gateway.String(), "error", err)
	return true
}
