package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/visit"
)

// client asks for what the bench looks at.
type client struct {
	visit.Client
	header string // a line to send beside the host with get; may be empty
}

// clientOf returns a client of an address, without TLS.
func clientOf(address string) *client { return &client{Client: visit.Client{Address: address}} }

// answer is what the bench looks at in a response.
type answer struct {
	status  int
	version string // set by the route
	backend string // set by the backend
}

// get asks for / of a host.
func (c *client) get(host string) (answer, error) {
	return c.send(visit.Request{Host: host, Path: "/", Header: c.header})
}

func (c *client) send(r visit.Request) (answer, error) {
	a, err := c.Get(context.Background(), r)
	return answer{a.Status, a.Header.Get("Version"), a.Header.Get("Backend")}, err
}

// wait pauses between two looks at something. It reports false when ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// errEnded says that what is waited for can't come any more.
var errEnded = errors.New("gatehouse has ended")

// until looks again and again, and gives up after a time that no healthy run
// needs. An error that is not errEnded only says why it is not reached yet.
func until(ctx context.Context, what string, limit, pause time.Duration, reached func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		ok, err := reached()
		if ok {
			return nil
		}
		if errors.Is(err, errEnded) || !wait(ctx, pause) {
			return fmt.Errorf("waited for %s: %w", what, errors.Join(ctx.Err(), err))
		}
	}
}
