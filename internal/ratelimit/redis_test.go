package ratelimit

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// redisServer is a real server on a Unix socket or a port, which a test may kill and start
// again at the same address.
type redisServer struct {
	binary, address, dir string
	flags                []string
	cmd                  *exec.Cmd
}

// startRedis skips the test where there is no redis-server, save in CI, which installs it.
func startRedis(t testing.TB, flags ...string) *redisServer {
	t.Helper()
	binary := os.Getenv("GATEHOUSE_REDIS")
	if binary == "" {
		found, err := exec.LookPath("redis-server")
		if err != nil {
			const text = "redis-server is not on PATH: install Debian's redis-server, or name the program by GATEHOUSE_REDIS"
			if os.Getenv("CI") == "true" {
				t.Fatal(text)
			}
			t.Skip(text)
		}
		binary = found
	}
	s := &redisServer{binary: binary, address: port.AddressOfTest(t), dir: t.TempDir(), flags: flags}
	s.start(t)
	t.Cleanup(func() {
		if s.cmd != nil {
			s.kill(t)
		}
	})
	return s
}

func (s *redisServer) start(t testing.TB) {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.address)
	args := []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.dir}
	s.cmd = exec.Command(s.binary, append(args, s.flags...)...)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", s.address)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("redis-server does not listen at %s: %v", s.address, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *redisServer) kill(t testing.TB) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = s.cmd.Wait()
	s.cmd = nil
}

// store waits for as long as a busy machine may need. What it counts, not when, is what most
// tests are about.
func (s *redisServer) store(t testing.TB, gateway object.Name) *Redis {
	t.Helper()
	r, err := NewRedis(RedisOptions{Gateway: gateway, Addresses: []string{s.address}, timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRedisKeepsGatewaysApart(t *testing.T) {
	server := startRedis(t)
	hits := []Hit{hit("a", 1, time.Hour, 1)}
	for _, gateway := range []object.Name{gatewayName, {Namespace: "shop", Name: "other"}, {Namespace: "shop/edge"}} {
		store := server.store(t, gateway)
		defer store.Close()
		if refused, _ := take(t, store, hits...); refused {
			t.Errorf("Gateway %s is refused for what another one has used", gateway)
		}
		if refused, _ := take(t, store, hits...); !refused {
			t.Errorf("Gateway %s is let through twice", gateway)
		}
	}
}

func TestRedisKeysExpireAndAreBounded(t *testing.T) {
	server := startRedis(t)
	store := server.store(t, object.Name{Namespace: strings.Repeat("n", 63), Name: strings.Repeat("g", 253)})
	defer store.Close()
	take(t, store, hit("a", 10, time.Minute, 1), hit("b", 10, time.Minute, 0))
	client := redis.NewClient(&redis.Options{Addr: server.address})
	defer client.Close()
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 1 || len(keys[0]) > 64 || !strings.HasPrefix(keys[0], "gatehouse:{") {
		t.Fatalf("keys %q: want one of up to 64 bytes, since a look keeps nothing", keys)
	}
	if left := client.PTTL(t.Context(), keys[0]).Val(); left <= 0 || left > time.Minute {
		t.Errorf("the key ends in %s, not within its window", left)
	}
}

// A replica that starts while others run has their counts.
func TestRedisReplicasShareCounts(t *testing.T) {
	server := startRedis(t)
	passed := 0
	for range 2 {
		client := dial(t, newServer(t, server.store(t, gatewayName)))
		for range 60 {
			passed += passes(t, client, check(desc("a", "100/1h")))
		}
	}
	if passed != 100 {
		t.Errorf("%d were let through, not 100", passed)
	}
}

func TestRedisPassword(t *testing.T) {
	server := startRedis(t, "--requirepass", "a-password")
	password := "wrong"
	store, err := NewRedis(RedisOptions{
		Gateway: gatewayName, Addresses: []string{server.address},
		Credentials: func() (string, string) { return "", password }, timeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	hits := []Hit{hit("a", 1, time.Hour, 1)}
	_, err = store.Take(t.Context(), hits, make([]Verdict, 1))
	if err == nil || strings.Contains(err.Error(), password) {
		t.Fatalf("with a wrong password the error is %v", err)
	}
	// A Secret that is corrected goes into force with the next connection.
	password = "a-password"
	if refused, _ := take(t, store, hits...); refused {
		t.Error("the first hit is refused")
	}
}

// patience is how long a busy machine may need for what takes parts of a second.
const patience = 20 * time.Second

// failed returns the error of a store that must not hold up a request.
func failed(t *testing.T, store *Redis, hits []Hit) error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := store.Take(t.Context(), hits, make([]Verdict, len(hits)))
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatal("the request is held up")
		return nil
	}
}

// A store that is gone is an error within the time, and nothing else; one that is back
// is used without anybody's doing.
func TestRedisKilledAndBack(t *testing.T) {
	server := startRedis(t)
	store := server.store(t, gatewayName)
	defer store.Close()
	hits := []Hit{hit("a", 1_000_000, time.Hour, 1)}
	take(t, store, hits...)
	server.kill(t)
	for range 5 {
		if failed(t, store, hits) == nil {
			t.Fatal("there is an answer without a store")
		}
	}
	server.start(t)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := store.Take(t.Context(), hits, make([]Verdict, 1)); err == nil {
			return
		}
	}
	t.Error("a store that is back is not used")
}

// A store that takes connections and says nothing holds up a request for a bounded time.
func TestRedisSilent(t *testing.T) {
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	store, err := NewRedis(RedisOptions{Gateway: gatewayName, Addresses: []string{lis.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if failed(t, store, []Hit{hit("a", 1, time.Hour, 1)}) == nil {
		t.Error("there is an answer from a silent store")
	}
}

func TestRedisOptions(t *testing.T) {
	for name, o := range map[string]RedisOptions{
		"none":    {},
		"several": {Addresses: []string{"a:1", "b:1"}},
	} {
		if _, err := NewRedis(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// failing is a store that can't be reached.
type failing struct{}

func (failing) Take(context.Context, []Hit, []Verdict) (bool, error) {
	return false, errors.New("dial tcp 192.0.2.1:6379: no route to host")
}
func (failing) Close() error { return nil }
