package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/child"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// standalone is a `gatehouse run` over a directory of its own, with its Envoy.
type standalone struct {
	binary      string
	root        string // holds everything below; removed at the end
	port        int    // of the listener
	concurrency int

	cmd    *exec.Cmd
	exited <-chan struct{} // closed when cmd has ended
	output *os.File
}

// The directories below root. Their names are short: socket paths are limited.
func (s *standalone) manifests() string { return filepath.Join(s.root, "m") }
func (s *standalone) staging() string   { return filepath.Join(s.root, "n") }
func (s *standalone) state() string     { return filepath.Join(s.root, "s") }
func (s *standalone) logFile() string   { return filepath.Join(s.root, "log") }
func (s *standalone) address() string   { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// newStandalone prepares the directory with a Gateway.
func newStandalone(ctx context.Context, binary string, concurrency int) (*standalone, error) {
	root, err := os.MkdirTemp("", "gatehouse-bench-")
	if err != nil {
		return nil, err
	}
	s := &standalone{binary: binary, root: root, concurrency: concurrency}
	for _, dir := range []string{s.manifests(), s.staging()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	for s.port <= listenerPort { // an offset is not negative
		if s.port, err = port.Free(); err != nil {
			return nil, err
		}
	}
	return s, os.WriteFile(filepath.Join(s.manifests(), "gateway.yaml"), []byte(gatewayManifest), 0o600)
}

// put writes an entry's file, or replaces it, in one step.
func (s *standalone) put(e entry) error {
	if err := s.stage(e.fileName(), e.manifest()); err != nil {
		return err
	}
	return s.place(e.fileName())
}

// stage writes a file where gatehouse doesn't see it, and place puts it where it does.
func (s *standalone) stage(name string, text []byte) error {
	return os.WriteFile(filepath.Join(s.staging(), name), text, 0o600)
}

func (s *standalone) place(name string) error {
	return os.Rename(filepath.Join(s.staging(), name), filepath.Join(s.manifests(), name))
}

func (s *standalone) remove(e entry) error {
	return os.Remove(filepath.Join(s.manifests(), e.fileName()))
}

// start starts the control plane.
func (s *standalone) start() error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	s.output = log
	s.cmd = exec.Command(s.binary, "run", s.manifests(),
		"--state-dir", s.state(), "--admin", "127.0.0.1:0", "--drain-timeout", "1s",
		"--port-offset", strconv.Itoa(s.port-listenerPort),
		"--concurrency", strconv.Itoa(s.concurrency))
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if s.exited, err = child.Start(s.cmd, syscall.SIGTERM); err != nil {
		s.cmd = nil
		return errors.Join(fmt.Errorf("start %s: %w", s.binary, err), log.Close())
	}
	return nil
}

func (s *standalone) pid() int { return s.cmd.Process.Pid }

// kill ends the control plane without warning, and leaves its Envoy alone.
func (s *standalone) kill() error {
	err := s.cmd.Process.Kill()
	<-s.exited
	return errors.Join(err, s.output.Close())
}

// alive returns an error that tells the log's end when the control plane has ended.
func (s *standalone) alive() error {
	select {
	case <-s.exited:
		return fmt.Errorf("%w:\n%s", errEnded, s.lastWords())
	default:
		return nil
	}
}

func (s *standalone) lastWords() string {
	const most = 2000
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// stop ends everything and removes the directory.
func (s *standalone) stop() error {
	var errs []error
	if s.cmd != nil {
		const grace = 20 * time.Second
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.exited:
		case <-time.After(grace):
			errs = append(errs, fmt.Errorf("gatehouse did not stop within %s:\n%s", grace, s.lastWords()), s.cmd.Process.Kill())
			<-s.exited
		}
		_ = s.output.Close()
		// An Envoy outlives a control plane that was killed.
		if pid, err := s.envoyPID(); err == nil {
			errs = append(errs, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.root))...)
}

// envoyDir returns the private directory of the one Gateway's Envoy.
func (s *standalone) envoyDir() (string, error) {
	found, err := filepath.Glob(filepath.Join(s.state(), "g", "*"))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d directories of Envoys in %s, not 1", len(found), s.state())
	}
	return found[0], nil
}

// envoyPID returns the running Envoy's process.
func (s *standalone) envoyPID() (int, error) {
	dir, err := s.envoyDir()
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "envoy.json"))
	if err != nil {
		return 0, err
	}
	var record struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(text, &record); err != nil {
		return 0, fmt.Errorf("record of the Envoy: %w", err)
	}
	// A pid in a file may be anybody's by now.
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", record.PID))
	if err != nil {
		return 0, err
	}
	if !strings.Contains(string(command), dir) {
		return 0, fmt.Errorf("process %d is not the Envoy of %s", record.PID, dir)
	}
	return record.PID, nil
}

// fetch reads a page of an admin interface on a Unix socket.
func fetch(ctx context.Context, socket, path string) (string, error) {
	const limit = time.Minute // a forced collection of a large heap takes its time
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://admin"+path, nil)
	if err != nil {
		return "", err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", fmt.Errorf("%s of %s: %w", path, socket, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s of %s: %s: %s", path, socket, response.Status, text)
	}
	return string(text), nil
}

// admin reads a page of the control plane's admin interface.
func (s *standalone) admin(ctx context.Context, path string) (string, error) {
	return fetch(ctx, filepath.Join(s.state(), "admin.sock"), path)
}

// metrics returns the control plane's metrics by name, summed over their labels.
func (s *standalone) metrics(ctx context.Context) (map[string]float64, error) {
	text, err := s.admin(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	sums := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		name, _, _ := strings.Cut(line[:max(at, 0)], "{")
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		sums[name] += value
	}
	return sums, nil
}

// heap returns the bytes in use on the control plane's heap, after a collection.
func (s *standalone) heap(ctx context.Context) (float64, error) {
	for range 2 { // what a sync.Pool holds survives one
		if _, err := s.admin(ctx, "/debug/pprof/heap?gc=1"); err != nil {
			return 0, err
		}
	}
	m, err := s.metrics(ctx)
	return m["go_memstats_heap_alloc_bytes"], err
}

// ready waits until the proxy has acknowledged the configuration.
func (s *standalone) ready(ctx context.Context) error {
	return until(ctx, "gatehouse to be ready", 2*time.Minute, 5*time.Millisecond, func() (bool, error) {
		_, err := s.admin(ctx, "/readyz")
		return err == nil, errors.Join(err, s.alive())
	})
}

// envoyStats returns Envoy's counters whose names match a regex.
func (s *standalone) envoyStats(ctx context.Context, filter string) (map[string]int, error) {
	dir, err := s.envoyDir()
	if err != nil {
		return nil, err
	}
	text, err := fetch(ctx, filepath.Join(dir, "admin.sock"), "/stats?filter="+filter)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if n, err := strconv.Atoi(value); ok && err == nil {
			out[name] = n
		}
	}
	return out, nil
}

// listenerUpdates returns how many times Envoy has added, changed or removed a
// listener.
func (s *standalone) listenerUpdates(ctx context.Context) (int, error) {
	stats, err := s.envoyStats(ctx, "listener_manager.listener_")
	if err != nil {
		return 0, err
	}
	n := 0
	for _, what := range []string{"added", "modified", "in_place_updated", "removed"} {
		count, ok := stats["listener_manager.listener_"+what]
		if !ok {
			return 0, fmt.Errorf("Envoy counts no listener_manager.listener_%s", what)
		}
		n += count
	}
	return n, nil
}
