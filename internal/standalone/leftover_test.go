package standalone

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/proxy"
)

// crashes names the directory that a process of these tests serves until it is killed.
const crashes = "GATEHOUSE_TEST_CRASHES"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashes); dir != "" {
		serveUntilKilled(dir)
	}
	os.Exit(m.Run())
}

func serveUntilKilled(dir string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*longestWait) // should nobody kill it
	defer cancel()
	binary, err := proxy.Find(ctx, proxy.FindOptions{})
	if err != nil {
		panic(err)
	}
	s, err := New(Options{
		Paths: []string{filepath.Join(dir, "files")}, Bind: []string{"127.0.0.1"}, Envoy: binary, Concurrency: 1,
		StateDir: filepath.Join(dir, "s"), DrainTimeout: time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	if err := s.Run(ctx); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// An Envoy that has outlived a crash of `gatehouse run` goes on serving while the next run can't compute its Gateway,
// which does not mean that it is gone. Nor is it left to itself for ever: the run takes it over when it can.
func TestLeftoverOfAGatewayThatFails(t *testing.T) {
	s := prepareServed(t, time.Millisecond)
	first := exec.CommandContext(t.Context(), os.Args[0])
	first.Env = append(os.Environ(), crashes+"="+filepath.Dir(s.files))
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	s.until("answers", s.answers)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // killed

	s.prepare = func(s *Standalone) {
		s.pipeline.Engine.Trip(func(table string, _ any) {
			if table == "topology-gateways" {
				panic("told to")
			}
		})
	}
	s.run()
	s.until("the files are read", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.loaded
	})
	done := make(chan struct{})
	s.loop.Call(t.Context(), func() { close(done) }) // what follows from that is done
	<-done
	if n := s.leaving(); n != 0 || !s.answers() {
		t.Errorf("%d Envoys are stopped; the Gateway answers: %t", n, s.answers())
	}

	s.pipeline.Engine.Trip(nil)
	if err := os.WriteFile(s.gateway(), []byte(strings.ReplaceAll(s.text(), "{name: edge}", "{name: edge, labels: {a: b}}")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.until("the Envoy is taken over", func() bool { return s.fleet.Snapshot()[edge].Adopted && s.answers() })
}
