// Package child starts processes that end with the one that started them, however that
// comes to its end: killed, too.
package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts a command in a process group of its own, so that a Ctrl-C at the terminal
// doesn't reach it. When this process ends, it gets the signal; that can be had on Linux
// only. The channel is closed when it has ended, and cmd.ProcessState says how.
func Start(cmd *exec.Cmd, last syscall.Signal) (ended <-chan struct{}, err error) {
	cmd.SysProcAttr = attributes(last)
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		// To the kernel the parent is the thread that started the child: it must stay as
		// long as the child does. Go ends threads, though not many.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its state
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return done, nil
}
