package apiserver

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/child"
)

// process is a running command.
type process struct {
	cmd  *exec.Cmd
	done <-chan struct{} // closed when it has ended
}

// launch starts a command that writes what it says into a file, and that dies
// with this process.
func launch(logFile, name string, args ...string) (*process, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // the child has its own
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	// Half of what a server does while it starts is to look for garbage, of which it
	// has little.
	cmd.Env = append(os.Environ(), "GOGC=400")
	ended, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &process{cmd, ended}, nil
}

// kill ends the process at once and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop lets the process end in order, within a few seconds.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.kill()
	}
}
