package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// balancer sends clients to pods that are ready, and learns of a change as late as
// the ways of a cluster make it.
type balancer struct {
	pods  []*pod
	late  time.Duration
	known sync.Map // *pod → bool
	left  sync.Map // *pod → time.Time, since when nobody is sent to it
	next  atomic.Uint64
}

func balance(t *testing.T, late time.Duration, pods ...*pod) *balancer {
	b := &balancer{pods: pods, late: late}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, p := range pods {
		b.known.Store(p, true)
		all.Go(func() {
			for ready := true; ; {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
				if now := p.isReady(); now != ready {
					ready = now
					all.Go(func() {
						<-time.After(late)
						b.known.Store(p, now)
						if !now {
							b.left.Store(p, time.Now())
						}
					})
				}
			}
		})
	}
	t.Cleanup(func() { close(stop); all.Wait() })
	return b
}

// pick returns a pod for a new connection.
func (b *balancer) pick() (*pod, error) {
	first := b.next.Add(1)
	for i := range b.pods {
		p := b.pods[(first+uint64(i))%uint64(len(b.pods))]
		if known, _ := b.known.Load(p); known.(bool) {
			return p, nil
		}
	}
	return nil, errors.New("no pod is ready")
}

// tally is what clients have seen.
type tally struct {
	answers, failures atomic.Int64
	mu                sync.Mutex
	first             error
}

func (c *tally) count(err error) {
	if err == nil {
		c.answers.Add(1)
		return
	}
	c.failures.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == nil {
		c.first = err
	}
}

// load sends requests from several clients until the returned function is called.
func (b *balancer) load(t *testing.T, client func(stop <-chan struct{}, c *tally)) (result *tally, end func()) {
	result = &tally{}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { client(stop, result) })
	}
	end = sync.OnceFunc(func() { close(stop); all.Wait() })
	t.Cleanup(end)
	return result, end
}

// http1 keeps its connection for as long as it may. Nothing is tried twice: what a
// retry would hide is a failure here.
func (b *balancer) http1(stop <-chan struct{}, c *tally) {
	var conn net.Conn
	var r *bufio.Reader
	for {
		select {
		case <-stop:
			if conn != nil {
				conn.Close()
			}
			return
		default:
		}
		if conn == nil {
			p, err := b.pick()
			if err == nil {
				conn, err = net.Dial("tcp", p.address)
			}
			if err != nil {
				c.count(err)
				continue
			}
			r = bufio.NewReader(conn)
		}
		closing, err := ask(conn, r)
		c.count(err)
		if err != nil || closing {
			conn.Close()
			conn = nil
		}
	}
}

func ask(conn net.Conn, r *bufio.Reader) (closing bool, err error) {
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"); err != nil {
		return true, err
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return true, err
	}
	if resp.StatusCode != http.StatusOK {
		return true, fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp.Close, nil
}

// http2 sends several requests at a time over one connection, for as long as it may.
func (b *balancer) http2(stop <-chan struct{}, c *tally) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		p, err := b.pick()
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, "tcp", p.address)
	}}
	client := http.Client{Transport: transport, Timeout: patience}
	defer transport.CloseIdleConnections()
	for {
		select {
		case <-stop:
			return
		default:
		}
		var burst sync.WaitGroup
		for range 4 {
			burst.Go(func() { c.count(post(&client)) })
		}
		burst.Wait()
	}
}

// post sends a request that net/http can't send twice. If its connection was closing when its
// turn came and nothing of it was sent, net/http gives up for want of a second body; it gets one.
func post(client *http.Client) error {
	body := &sent{Reader: strings.NewReader("body")}
	resp, err := client.Post("http://edge", "text/plain", body)
	if err != nil && strings.Contains(err.Error(), "cannot rewind body") && !body.some.Load() {
		return post(client)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// sent is a body that tells whether some of it was asked for.
type sent struct {
	io.Reader
	some atomic.Bool
}

func (s *sent) Read(p []byte) (int, error) {
	s.some.Store(true)
	return s.Reader.Read(p)
}

// A pod that is stopped under load costs no request, as long as it serves on for
// longer than it takes until nobody is sent to it.
func TestStopUnderLoad(t *testing.T) {
	for name, client := range map[string]func(*balancer, <-chan struct{}, *tally){
		"HTTP/1": (*balancer).http1, "HTTP/2": (*balancer).http2,
	} {
		t.Run(name, func(t *testing.T) {
			for delay := time.Second; !stopsUnderLoad(t, delay, client); delay *= 2 {
				t.Logf("on a machine this busy, pods were sent to after %s", delay)
			}
		})
	}
}

// stopsUnderLoad stops one of two pods. It returns false where those who send to pods were
// too late to know.
func stopsUnderLoad(t *testing.T, delay time.Duration, client func(*balancer, <-chan struct{}, *tally)) bool {
	const late = 300 * time.Millisecond
	var pods []*pod
	for range 2 {
		c := newController(t)
		p := startPod(t, c, func(cfg *Config) { cfg.DrainDelay = delay })
		c.apply(listener(t, p.address))
		pods = append(pods, p)
	}
	for _, p := range pods {
		p.untilReady()
	}
	b := balance(t, late, pods...)
	result, end := b.load(t, func(stop <-chan struct{}, c *tally) { client(b, stop, c) })
	until(t, "loaded", func() bool { return result.answers.Load() > 100 })
	began := time.Now()
	pods[0].stop()
	took := time.Since(began)
	if left, ok := b.left.Load(pods[0]); !ok || left.(time.Time).Sub(began) > delay*3/4 {
		end()
		return false
	}
	after := result.answers.Load()
	until(t, "served by the other pod", func() bool { return result.answers.Load() > after+100 })
	end()
	if n := result.failures.Load(); n > 0 {
		t.Errorf("%d of %d requests failed; the first: %v", n, result.answers.Load()+n, result.first)
	}
	if took < delay {
		t.Errorf("stopped after %s", took)
	}
	t.Logf("%d answers, stopped in %s", result.answers.Load(), took)
	return true
}
