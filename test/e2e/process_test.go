//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/child"
	"github.com/gatehouse-dev/gatehouse/test/output"
)

const (
	readyTimeout = 30 * time.Second
	stopTimeout  = 20 * time.Second
)

// process is one `gatehouse run`, with the directories that outlive it.
type process struct {
	tools
	dir      string // watched
	state    string // --state-dir
	args     []string
	admin    string // address of the admin server, once ready
	cmd      *exec.Cmd
	log      *output.Buffer
	finished <-chan struct{} // closed when the process has ended
}

// newProcess prepares the directories of a process; args are further arguments
// of `run`. The process is not started yet.
func newProcess(found tools, args ...string) (*process, error) {
	base, err := os.MkdirTemp(scratch, "p")
	if err != nil {
		return nil, err
	}
	p := &process{tools: found, dir: filepath.Join(base, "d"), state: filepath.Join(base, "s"), args: args, log: new(output.Buffer)}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		return nil, err
	}
	return p, nil
}

// startProcess runs gatehouse for the time of the test, with the given
// manifests (file name → content) already there.
func startProcess(t *testing.T, manifests map[string]string, args ...string) *process {
	t.Helper()
	p, err := newProcess(needTools(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range manifests {
		p.write(t, name, content)
	}
	t.Cleanup(func() {
		p.end()
		if t.Failed() {
			t.Logf("end of gatehouse's log:\n%s", p.log.Tail(60))
		}
	})
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	if err := p.waitReady(); err != nil {
		t.Fatal(err)
	}
	return p
}

// start starts the process without waiting for anything.
func (p *process) start() error {
	_ = os.Remove(filepath.Join(p.state, "admin.addr"))
	args := append([]string{
		"run", "--admin", "127.0.0.1:0", "--envoy", p.envoy, "--state-dir", p.state, "--log-format", "text",
	}, p.args...)
	p.cmd = exec.Command(p.gatehouse, append(args, p.dir)...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	var err error
	if p.finished, err = child.Start(p.cmd, syscall.SIGTERM); err != nil {
		return fmt.Errorf("start gatehouse: %w", err)
	}
	return nil
}

// waitReady waits until /readyz answers 200.
func (p *process) waitReady() error {
	address := filepath.Join(p.state, "admin.addr")
	err := poll(readyTimeout, func() error {
		select {
		case <-p.finished:
			return permanent(fmt.Errorf("gatehouse ended early: %s\n%s", p.cmd.ProcessState, p.log.Tail(40)))
		default:
		}
		b, err := os.ReadFile(address)
		if err != nil {
			return err
		}
		p.admin = strings.TrimSpace(string(b))
		status, body, err := p.get("/readyz")
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return fmt.Errorf("/readyz: %d %s", status, body)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("gatehouse is not ready: %w\n%s", err, p.log.Tail(40))
	}
	return nil
}

// get asks the admin server.
func (p *process) get(path string) (int, string, error) {
	client := http.Client{Timeout: 5 * time.Second}
	res, err := client.Get("http://" + p.admin + path)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// terminate asks the process to end and returns its exit code.
func (p *process) terminate() (int, error) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	select {
	case <-p.finished:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(stopTimeout):
		return 0, fmt.Errorf("gatehouse has not ended %s after SIGTERM", stopTimeout)
	}
}

// kill ends the process as a crash would; its Envoys live on.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.finished
}

// end stops the process by whatever it takes, and every process that it left.
func (p *process) end() {
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	if _, err := p.terminate(); err != nil {
		p.kill()
	}
	killStrays(p.state)
}

// run runs another command of gatehouse to its end.
func (t tools) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, t.gatehouse, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("gatehouse %s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

// exitCode returns the exit code of a command that ended by itself.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode() // -1 for one that had to be killed
	default:
		return -1
	}
}

// write replaces a file of the watched directory atomically, as editors do.
func (p *process) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(temp, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, path); err != nil {
		t.Fatal(err)
	}
}

// remove deletes a file or a directory of the watched directory.
func (p *process) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(p.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// envoys returns the ids of the Envoys that work for this process.
func (p *process) envoys() []int {
	var pids []int
	for _, pid := range processesNaming(p.state) {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && strings.Contains(filepath.Base(exe), "envoy") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processesNaming returns the ids of the processes, other than this one, that
// name path on their command line. The paths asked for are this run's own
// temporary directories, so no stranger's process is among them.
func processesNaming(path string) []int {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	var pids []int
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(b, []byte(path)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killStrays ends what still runs under one of this run's directories.
func killStrays(path string) {
	if path == "" {
		return
	}
	for _, pid := range processesNaming(path) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
