package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// requestTimeout bounds one request. An answer that takes longer is as bad as none.
const requestTimeout = 5 * time.Second

// visitor sends one request after another over one connection. It spends little CPU,
// of which what is measured needs its share here.
type visitor struct {
	cluster *cluster.Cluster
	address string
	tls     *tls.Config // none: no TLS
	conn    net.Conn
	in      *bufio.Reader
	out     []byte
}

func (v *visitor) close() {
	if v.conn != nil {
		_ = v.conn.Close()
		v.conn = nil
	}
}

// get returns the status of an answer. After an error the next call opens a new
// connection.
func (v *visitor) get(ctx context.Context, host, path string) (int, error) {
	status, err := v.try(ctx, host, path)
	if err != nil {
		v.close()
		return 0, fmt.Errorf("GET http://%s%s: %w", host, path, err)
	}
	return status, nil
}

func (v *visitor) try(ctx context.Context, host, path string) (int, error) {
	if v.conn == nil {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		conn, err := v.cluster.Dial(ctx, "tcp", v.address)
		if err != nil {
			return 0, err
		}
		if v.tls != nil {
			secured := v.tls.Clone()
			secured.ServerName = host
			conn = tls.Client(conn, secured)
		}
		v.conn, v.in = conn, bufio.NewReader(conn)
	}
	if err := v.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return 0, err
	}
	v.out = fmt.Appendf(v.out[:0], "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host)
	if _, err := v.conn.Write(v.out); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(v.in, nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return 0, err
	}
	if response.Close {
		v.close()
	}
	return response.StatusCode, nil
}

// pause is between two looks at whether a route is served. The public benchmark has
// 5 ms, which at our latencies would be most of the figure.
const pause = time.Millisecond

// served asks for a path until the answer is 200, and returns when that was and how
// many answers before it were neither 404 nor 200. No answer is a wrong one too, except
// with TLS: before there is a listener, there is no connection.
func (v *visitor) served(ctx context.Context, host, path string) (at time.Time, wrong int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		status, err := v.get(ctx, host, path)
		switch {
		case err == nil && status == http.StatusOK:
			return time.Now(), wrong, nil
		case err != nil && v.tls != nil:
		case err != nil || status != http.StatusNotFound:
			wrong++
		}
		if sleep(ctx, pause) != nil {
			return time.Time{}, wrong, fmt.Errorf("%s%s is not served, its last answer is %d: %w", host, path, status, errors.Join(ctx.Err(), err))
		}
	}
}
