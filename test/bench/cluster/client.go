package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
	"github.com/gatehouse-dev/gatehouse/test/visit"
)

// visitor asks at an address in the cluster.
type visitor struct{ visit.Client }

// visit returns a visitor, without TLS if it has no configuration.
func (b *bench) visit(address string, config *tls.Config) *visitor {
	return &visitor{visit.Client{Address: address, Dial: b.cluster.Dial, TLS: config}}
}

// get returns the status of an answer.
func (v *visitor) get(ctx context.Context, host, path string) (int, error) {
	a, err := v.Get(ctx, visit.Request{Host: host, Path: path})
	return a.Status, err
}

// pause is between two looks at whether a route is served. The public benchmark has
// 5 ms, which at our latencies would be most of the figure.
const pause = time.Millisecond

// served asks for a path until the answer is 200, and returns when that was and how
// many answers before it were neither 404 nor 200. No answer is a wrong one too, except
// with TLS: before there is a listener, there is no connection.
func (v *visitor) served(ctx context.Context, host, path string) (at time.Time, wrong int, err error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.Patience)
	defer cancel()
	for {
		status, err := v.get(ctx, host, path)
		switch {
		case err == nil && status == http.StatusOK:
			return time.Now(), wrong, nil
		case err != nil && v.TLS != nil:
		case err != nil || status != http.StatusNotFound:
			wrong++
		}
		if cluster.Sleep(ctx, pause) != nil {
			return time.Time{}, wrong, fmt.Errorf("%s%s is not served, its last answer is %d: %w", host, path, status, errors.Join(ctx.Err(), err))
		}
	}
}
