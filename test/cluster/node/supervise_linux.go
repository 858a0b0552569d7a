package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// component is a program that the node runs.
type component struct {
	name string // of the program and of its log
	args []string
}

// restartDelay is between the end of a component and its next start. They
// start all at once, and some end when the API server isn't there yet.
const restartDelay = time.Second

// supervise starts components and starts again what ends. As the first process
// of its namespace it also reaps what others leave, such as containers' shims;
// so it must be the only one that waits, and nothing here may use os/exec for
// more than a path.
func supervise(logs string, components []component) error {
	running := map[int]component{}
	start := func(c component) error {
		path, err := exec.LookPath(c.name)
		if err != nil {
			return err
		}
		out, err := os.OpenFile(filepath.Join(logs, c.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer func() { _ = out.Close() }()
		process, err := os.StartProcess(path, append([]string{c.name}, c.args...), &os.ProcAttr{
			Files: []*os.File{nil, out, out},
			Env:   os.Environ(),
		})
		if err != nil {
			return err
		}
		running[process.Pid] = c
		return process.Release() // by the loop below
	}
	for _, c := range components {
		if err := start(c); err != nil {
			return err
		}
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("wait4", err)
		}
		c, ok := running[pid]
		if !ok {
			continue
		}
		delete(running, pid)
		fmt.Printf("%s %s ended: exit status %d, signal %d\n", time.Now().Format(time.TimeOnly), c.name, status.ExitStatus(), status.Signal())
		time.Sleep(restartDelay)
		if err := start(c); err != nil {
			return err
		}
	}
}
