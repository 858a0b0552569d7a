package apiserver

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a running command.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// launch starts a command that writes what it says into a file, and that dies
// with this process.
func launch(logFile, name string, args ...string) (*process, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// Half of what a server does while it starts is to look for garbage, of which it
	// has little.
	p.cmd.Env = append(os.Environ(), "GOGC=400")
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		defer out.Close()
		// To the kernel the parent is the thread that started the child: it must
		// stay as long as the child does.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended doesn't matter
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
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
