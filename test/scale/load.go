package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// load sends requests at a rate while something happens to what serves them.
// Every other one has a connection of its own: those that live long, and those
// that begin, break in different ways.
type load struct {
	stop context.CancelFunc
	done chan struct{}

	mu       sync.Mutex
	sent     int
	failures []string
}

func (b *bench) load(ctx context.Context, address, host string) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{stop: cancel, done: make(chan struct{})}
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
				err := request(context.WithoutCancel(ctx), transport, address, host)
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

// end stops the load and says how many requests failed.
func (l *load) end() float64 {
	l.stop()
	<-l.done
	fmt.Printf("  %d of %d requests failed\n", len(l.failures), l.sent)
	for i, failure := range l.failures {
		if i == 5 {
			fmt.Println("    …")
			break
		}
		fmt.Println("   ", failure)
	}
	return float64(len(l.failures))
}
