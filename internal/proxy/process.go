package proxy

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// watchInterval is how often an adopted process is looked at where the system can't
// tell of its end: only a parent is told everywhere.
const watchInterval = 100 * time.Millisecond

// process is one running Envoy, started by us or adopted.
type process struct {
	pid     int
	started time.Time
	adopted bool
	handle  *os.Process
	stalled bool // it stood still, so that we have ended it

	// done is closed when the process has ended; exit is valid from then on.
	done chan struct{}
	exit Exit
}

// launch starts the command and waits for its end in the background.
func launch(cmd *exec.Cmd) (*process, error) {
	if err := children.start(cmd); err != nil {
		return nil, err
	}
	p := &process{
		pid:     cmd.Process.Pid,
		started: time.Now(),
		handle:  cmd.Process,
		done:    make(chan struct{}),
	}
	go func() {
		// The error repeats what ProcessState says, as nothing is copied.
		_ = cmd.Wait()
		children.ended(p.pid)
		p.exit = Exit{At: time.Now(), PID: p.pid, Code: cmd.ProcessState.ExitCode()}
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			p.exit.Signal = ws.Signal().String()
		}
		close(p.done)
	}()
	return p, nil
}

// errGone says that a recorded process has ended.
var errGone = errors.New("the process has ended")

// attach takes up a process that somebody else has started. identity protects
// from a pid that the system has given to another process since.
func attach(pid int, identity string, started time.Time) (*process, error) {
	// The handle is taken before the identity is checked: from here on it
	// means this very process (a pidfd on Linux) or none.
	handle, err := os.FindProcess(pid)
	if err != nil {
		return nil, errGone
	}
	if now, err := processIdentity(pid); err != nil || now != identity {
		_ = handle.Release()
		return nil, errGone
	}
	p := &process{pid: pid, started: started, adopted: true, handle: handle, done: make(chan struct{})}
	go func() {
		awaitEnd(handle, identity)
		p.exit = Exit{At: time.Now(), PID: pid, Code: -1}
		close(p.done)
	}()
	return p, nil
}

// watchAlive looks at a process now and then until it has ended.
func watchAlive(handle *os.Process, identity string) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for processAlive(handle, identity) {
		<-tick.C
	}
}

// signal sends sig; a process that has ended already is no error.
func (p *process) signal(sig os.Signal) error {
	if err := p.handle.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to Envoy (pid %d): %w", sig, p.pid, err)
	}
	return nil
}

// wait waits for the end, at most for the given time, and says whether it came.
func (p *process) wait(timeout time.Duration) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// envoyCommand is the command line of a supervised Envoy. Output goes to a file
// that outlives us, and the process gets a session of its own: neither our end
// nor a Ctrl-C on our terminal reaches it.
func envoyCommand(c Config, bootstrap string, log *os.File) *exec.Cmd {
	args := []string{
		"--config-path", bootstrap,
		// Without a parent, a hot restart panics; restarts are ours.
		"--disable-hot-restart",
		"--log-level", c.LogLevel,
		"--log-format", logFormat,
		"--skip-deprecated-logs",
		// Lines of access logs are written at once, for a person who looks, and not after ten seconds.
		"--file-flush-interval-msec", "500",
	}
	if c.LogLevel != "debug" && c.LogLevel != "trace" {
		// It has a line, with what is in cookies, for each request that somebody gets wrong.
		args = append(args, "--component-log-level", "oauth2:critical")
	}
	if c.Concurrency > 0 {
		args = append(args, "--concurrency", fmt.Sprint(c.Concurrency))
	}
	cmd := exec.Command(c.Binary.Path, args...)
	cmd.Dir = c.Dir
	cmd.Env = envoyEnviron()
	cmd.Stdout, cmd.Stderr = log, log
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// envoyEnviron is what Envoy gets to see of our environment. %ENVIRONMENT(X)%
// in a header value prints a variable to clients, so a control plane's tokens
// don't belong there.
func envoyEnviron() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// openLog opens the file that Envoy prints to.
func openLog(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}
