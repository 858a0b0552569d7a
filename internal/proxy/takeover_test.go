package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// helperEnv makes the test binary a supervisor that its parent can kill -9.
const helperEnv = "GATEHOUSE_TEST_SUPERVISE"

// helperSpec is the part of a Config that goes through the environment.
type helperSpec struct {
	Dir, XDSSocket, Path, Version string
}

func superviseForParent(spec string) int {
	var h helperSpec
	if err := json.Unmarshal([]byte(spec), &h); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err := New(Config{
		Gateway:     edge,
		Dir:         h.Dir,
		XDSSocket:   h.XDSSocket,
		Binary:      Binary{Path: h.Path, Version: h.Version},
		Concurrency: 1,
		Log:         slog.New(slog.DiscardHandler),
		OnState: func(s State) {
			if up(s) {
				fmt.Println(s.PID)
			}
		},
	}).Run(context.Background())
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// orphan starts an Envoy under a supervisor of another process, kills that
// process, and returns the pid of the Envoy that is left.
func orphan(t *testing.T, cfg Config) int {
	t.Helper()
	spec, err := json.Marshal(helperSpec{Dir: cfg.Dir, XDSSocket: cfg.XDSSocket, Path: cfg.Binary.Path, Version: cfg.Binary.Version})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+string(spec))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	var pid int
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatalf("the helper said %q: %v, %v", line, readErr, err)
	}
	return pid
}

func alive(pid int) bool {
	_, err := processIdentity(pid)
	return err == nil
}

// The control plane is killed, Envoy serves on, the next run takes it up, and
// from there on it is supervised like any other.
func TestAdopt(t *testing.T) {
	cfg := testConfig(shortDir(t))
	pid := orphan(t, cfg)
	cfg.LogLevel = "error" // no reason for another process
	r := run(t, cfg)
	s := r.until("running", up)
	if s.PID != pid || !s.Adopted || s.Restarts != 0 || s.Since.IsZero() {
		t.Fatalf("%+v, want pid %d adopted", s, pid)
	}
	if levels, err := r.Admin(t.Context(), http.MethodPost, "/logging"); err != nil || !strings.Contains(string(levels), "main: error") {
		t.Errorf("the log level is not as configured: %v\n%s", err, levels)
	}
	if _, err := r.Admin(t.Context(), http.MethodGet, "/ready"); err == nil {
		t.Error("Envoy is ready without a control plane")
	}
	new(adsServer).serve(t, cfg.XDSSocket)
	r.until("live", func(s State) bool { return s.Live && s.PID == pid })

	kill(t, pid)
	s = r.until("restarted", func(s State) bool { return up(s) && s.PID != pid })
	if s.Adopted || s.Restarts != 1 || s.LastExit == nil || s.LastExit.PID != pid || s.LastExit.Code != -1 {
		t.Errorf("%+v %+v", s, s.LastExit)
	}
}

func TestAdoptedIsStopped(t *testing.T) {
	cfg := testConfig(shortDir(t))
	pid := orphan(t, cfg)
	r := run(t, cfg)
	r.until("adopted", func(s State) bool { return up(s) && s.PID == pid })
	r.stop()
	if alive(pid) {
		t.Error("Envoy is left running")
	}
}

// An Envoy that is not what would be started now makes way for one that is.
func TestReplaced(t *testing.T) {
	cases := map[string]func(t *testing.T, cfg *Config){
		"other concurrency": func(_ *testing.T, cfg *Config) { cfg.Concurrency = 2 },
		"other socket":      func(_ *testing.T, cfg *Config) { cfg.XDSSocket += "2" },
		"other version":     func(_ *testing.T, cfg *Config) { cfg.Binary.Version = "1.40.1" },
		"drained by hand": func(t *testing.T, cfg *Config) {
			new(adsServer).serve(t, cfg.XDSSocket)
			s := New(*cfg)
			tick := time.NewTicker(probeFirst)
			defer tick.Stop()
			for word := ""; word != envoyLive; <-tick.C {
				var err error
				if word, err = s.admin.ready(t.Context(), patience); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Admin(t.Context(), http.MethodPost, "/healthcheck/fail"); err != nil {
				t.Fatal(err)
			}
		},
		"killed while draining": func(_ *testing.T, cfg *Config) { New(*cfg).markDraining() },
		"record lost": func(t *testing.T, cfg *Config) {
			if err := os.Remove(filepath.Join(cfg.Dir, recordFile)); err != nil {
				t.Fatal(err)
			}
		},
		"record damaged": func(t *testing.T, cfg *Config) {
			if err := os.WriteFile(filepath.Join(cfg.Dir, recordFile), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(shortDir(t))
			pid := orphan(t, cfg)
			change(t, &cfg)
			r := run(t, cfg)
			s := r.until("running", func(s State) bool { return up(s) && s.PID != pid })
			if s.Adopted || s.Restarts != 0 {
				t.Errorf("%+v", s)
			}
			if alive(pid) {
				t.Error("the old one is left running")
			}
		})
	}
}

// The Envoy of a Gateway that is gone does not serve for ever.
func TestStopLeftover(t *testing.T) {
	cfg := testConfig(shortDir(t))
	if err := StopLeftover(t.Context(), cfg); err != nil {
		t.Errorf("nothing there: %v", err)
	}
	pid := orphan(t, cfg)
	if err := StopLeftover(t.Context(), cfg); err != nil || alive(pid) {
		t.Errorf("%v, alive: %v", err, alive(pid))
	}
	run(t, cfg).until("running", up)
	if err := StopLeftover(t.Context(), cfg); !errors.Is(err, errLocked) {
		t.Errorf("one that is in use: %v", err)
	}
}

// A pid that the system has given to somebody else is nobody's Envoy.
func TestRecycledPID(t *testing.T) {
	cfg := testConfig(shortDir(t))
	if err := os.Mkdir(cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	stranger := exec.Command("sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	r := &record{PID: stranger.Process.Pid, Identity: "another start", Binary: cfg.Binary.Path, Version: cfg.Binary.Version}
	if err := r.write(cfg.Dir); err != nil {
		t.Fatal(err)
	}
	s := run(t, cfg).until("running", up)
	if s.Adopted || !alive(stranger.Process.Pid) {
		t.Errorf("%+v, stranger alive: %v", s, alive(stranger.Process.Pid))
	}
}
