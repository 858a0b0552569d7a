package chart

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A protocol opens sessions of that many questions.
type protocol struct {
	questions int
	open      func(ctx context.Context) (session, error)
}

// kept is for sessions that no client ends before the load does, and brief for some of five seconds.
const (
	kept  = math.MaxInt
	brief = 50
)

// session is a connection or a stream of a client, which ends it by itself.
type session struct {
	ask func() error // one question and its answer
	end func() error
}

// A count is what became of the questions of one protocol.
type count struct {
	asked  int
	failed []error
}

// load has some clients of each protocol, each of which asks ten times a second for at most a quarter of an hour, until it is
// stopped. Whatever can't be opened, asked or ended has failed.
func (in *running) load(clients int, protocols map[string]protocol) (stop func() map[string]count) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	in.Cleanup(cancel)
	var (
		mu  sync.Mutex
		out = map[string]count{}
		all sync.WaitGroup
	)
	done := func(name string, asked int, err error) {
		mu.Lock()
		defer mu.Unlock()
		c := out[name]
		c.asked += asked
		if err != nil {
			c.failed = append(c.failed, fmt.Errorf("%s: %w", time.Now().Format(time.TimeOnly), err))
		}
		out[name] = c
	}
	for name, p := range protocols {
		for range clients {
			all.Go(func() {
				tick := time.NewTicker(time.Second / 10)
				defer tick.Stop()
				for ctx.Err() == nil {
					// What is under way when the load is stopped is ended as any other.
					s, err := p.open(context.WithoutCancel(ctx))
					if err != nil {
						done(name, 0, fmt.Errorf("open: %w", err))
					}
					for i := 0; err == nil && i < p.questions && ctx.Err() == nil; i++ {
						if err = s.ask(); err != nil {
							err = fmt.Errorf("ask: %w", err)
						}
						done(name, 1, err)
						<-tick.C
					}
					if err != nil {
						<-tick.C
					} else if err := s.end(); err != nil {
						done(name, 0, fmt.Errorf("end: %w", err))
					}
				}
			})
		}
	}
	return func() map[string]count {
		cancel()
		all.Wait()
		return out
	}
}

// answered stops a load and wants each question answered.
func answered(t *testing.T, stop func() map[string]count) {
	t.Helper()
	for name, c := range stop() {
		t.Logf("%s: %d requests, %d failed", name, c.asked, len(c.failed))
		if c.asked == 0 {
			t.Errorf("%s: nothing was asked", name)
		}
		for i, err := range c.failed {
			if i < 10 {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// http1 keeps a connection. Its requests are none that a client repeats by itself once they are on their way, so that a
// connection that is cut shows.
func (in *running) http1(address string, want, questions int) protocol {
	return protocol{questions, func(ctx context.Context) (session, error) {
		web := &http.Client{
			Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: in.Dial, MaxIdleConnsPerHost: 1},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		return session{
			ask: func() error { return ask(ctx, web, http.MethodPost, address, want) },
			end: func() error { web.CloseIdleConnections(); return nil },
		}, nil
	}}
}

func ask(ctx context.Context, web *http.Client, method, address string, want int) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+"/", nil)
	if err != nil {
		return err
	}
	res, err := web.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != want {
		return fmt.Errorf("status %s", res.Status)
	}
	return nil
}

// grpcStreams keeps a connection of HTTP/2 for all clients, and sends messages over one stream a session. The backend answers at
// the end of a stream, with the last message.
func (in *running) grpcStreams(address string) protocol {
	return in.grpc(address, func(ctx context.Context, conn *grpc.ClientConn) (session, error) {
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, "/chart.Echo/Stream")
		if err != nil {
			return session{}, err
		}
		return session{
			ask: func() error { return stream.SendMsg(wrapperspb.String("hello")) },
			end: func() error {
				if err := stream.CloseSend(); err != nil {
					return err
				}
				var answer wrapperspb.StringValue
				if err := stream.RecvMsg(&answer); err != nil {
					return err
				}
				if !strings.Contains(answer.GetValue(), `"body":"hello"`) {
					return fmt.Errorf("answered %s", answer.GetValue())
				}
				return nil
			},
		}, nil
	})
}

// grpcCalls asks by calls of gRPC, over a connection that is kept.
func (in *running) grpcCalls(address string) protocol {
	return in.grpc(address, func(ctx context.Context, conn *grpc.ClientConn) (session, error) {
		return session{
			ask: func() error {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				return conn.Invoke(ctx, "/chart.Echo/Call", wrapperspb.String("hello"), &wrapperspb.StringValue{})
			},
			end: func() error { return nil },
		}, nil
	})
}

func (in *running) grpc(address string, open func(context.Context, *grpc.ClientConn) (session, error)) protocol {
	conn, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(address, "80"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return in.Dial(ctx, "tcp", address) }))
	if err != nil {
		in.Fatal(err)
	}
	in.Cleanup(func() { _ = conn.Close() })
	return protocol{brief, func(ctx context.Context) (session, error) { return open(ctx, conn) }}
}

// webSocket has a WebSocket for each session.
func (in *running) webSocket(address string) protocol {
	web := &http.Client{Transport: &http.Transport{DialContext: in.Dial}}
	return protocol{brief, func(ctx context.Context) (session, error) {
		opening, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		conn, res, err := websocket.Dial(opening, "ws://"+address+"/", &websocket.DialOptions{HTTPClient: web})
		if err != nil {
			if res != nil && res.Body != nil {
				_ = res.Body.Close()
			}
			return session{}, err
		}
		return session{
			ask: func() error {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				if err := conn.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
					return err
				}
				_, message, err := conn.Read(ctx)
				if err == nil && string(message) != "hello" {
					err = fmt.Errorf("answered %q", message)
				}
				return err
			},
			end: func() error { return conn.Close(websocket.StatusNormalClosure, "") },
		}, nil
	}}
}

// lines has a connection of TCP for each session.
func (in *running) lines(address string) protocol {
	return protocol{brief, func(ctx context.Context) (session, error) {
		opening, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		conn, err := in.Dial(opening, "tcp", net.JoinHostPort(address, "9000"))
		if err != nil {
			return session{}, err
		}
		answers := bufio.NewReader(conn)
		read := func(want string) error {
			answer, err := answers.ReadString('\n')
			if err == nil && !strings.HasSuffix(answer, want+"\n") {
				err = fmt.Errorf("answered %q", answer)
			}
			return err
		}
		return session{
			ask: func() error {
				if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
					return err
				}
				if _, err := io.WriteString(conn, "hello\n"); err != nil {
					return err
				}
				return read("hello")
			},
			end: func() error {
				defer func() { _ = conn.Close() }()
				half, ok := conn.(interface{ CloseWrite() error })
				if !ok {
					return errors.New("the connection can't be closed on one side")
				}
				if err := half.CloseWrite(); err != nil {
					return err
				}
				return read("bye")
			},
		}, nil
	}}
}
