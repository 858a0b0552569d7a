package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// load sends requests at a rate while something happens to what serves them, and
// changes routes meanwhile, the one that is asked too. Every other request has a
// connection of its own: those that live long, and those that begin, break in
// different ways.
type load struct {
	stop, calm context.CancelFunc
	done       chan struct{}
	changed    chan struct{} // closed when no route is changed any more
	changes    error         // of the changes, once changed is closed
	edits      int           // likewise

	mu       sync.Mutex
	sent     int
	failures []string
}

// load asks for the host of a route, which is attached to the Gateway of that name.
func (b *bench) load(ctx context.Context, address, host string) *load {
	changing, calm := context.WithCancel(ctx)
	ctx, stop := context.WithCancel(ctx)
	l := &load{stop: stop, calm: calm, done: make(chan struct{}), changed: make(chan struct{})}
	go func() {
		defer close(l.changed)
		l.edits, l.changes = b.change(changing, host)
	}()
	kept := &http.Transport{DialContext: b.cluster.Dial, MaxIdleConnsPerHost: 64}
	fresh := &http.Transport{DialContext: b.cluster.Dial, DisableKeepAlives: true}
	go func() {
		defer close(l.done)
		defer kept.CloseIdleConnections()
		var group sync.WaitGroup
		defer group.Wait()
		tick := time.NewTicker(time.Second / time.Duration(b.rate))
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			transport := kept
			if i%2 == 1 {
				transport = fresh
			}
			group.Go(func() {
				started := time.Now()
				// Requests under way are finished, whatever ends the load.
				err := request(context.WithoutCancel(ctx), transport, address, host, nil)
				l.mu.Lock()
				defer l.mu.Unlock()
				l.sent++
				if err != nil {
					l.failures = append(l.failures, fmt.Sprintf("%s, after %v: %v", started.Format("15:04:05.000"), time.Since(started).Round(time.Millisecond), err))
				}
			})
		}
	}()
	return l
}

// change edits a route twice a second, and now and then makes another one and
// deletes it, until ctx ends. It returns how many changes it made.
func (b *bench) change(ctx context.Context, route string) (int, error) {
	const pause = 500 * time.Millisecond
	coming := b.route(route+"-coming", route)
	for i := 0; ; i++ {
		// A request under way is finished: whether the route is there must be known.
		asking := context.WithoutCancel(ctx)
		var err error
		switch i % 4 {
		case 1:
			coming.ResourceVersion = ""
			err = b.client.Create(asking, coming)
		case 3:
			err = b.client.Delete(asking, coming)
		default:
			err = b.edit(asking, route, i)
		}
		if err != nil {
			return i, fmt.Errorf("change %d of routes: %w", i, err)
		}
		if cluster.Sleep(ctx, pause) != nil {
			if i%4 == 1 || i%4 == 2 {
				err = b.client.Delete(asking, coming)
			}
			return i, err
		}
	}
}

// edit makes a route set a header of its answers.
func (b *bench) edit(ctx context.Context, route string, value int) error {
	changed := b.route(route, route)
	patch := fmt.Sprintf(`[{"op": "add", "path": "/spec/rules/0/filters", "value": [
		{"type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": [{"name": %q, "value": "%d"}]}}]}]`, editHeader, value)
	return b.client.Patch(ctx, changed, client.RawPatch(types.JSONPatchType, []byte(patch)))
}

// editHeader is what edits of a route set.
const editHeader = "X-Edit"

// settle ends the changes of routes. The requests go on.
func (l *load) settle() {
	l.calm()
	<-l.changed
}

// end stops the load and says how many requests failed, and why routes could not be
// changed.
func (l *load) end() (failures float64, changes error) {
	l.settle()
	l.stop()
	<-l.done
	fmt.Printf("  %d of %d requests failed, beside %d changes of routes\n", len(l.failures), l.sent, l.edits)
	for i, failure := range l.failures {
		if i == 5 {
			fmt.Println("    …")
			break
		}
		fmt.Println("   ", failure)
	}
	return float64(len(l.failures)), l.changes
}
