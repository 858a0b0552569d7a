package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// down ends a cluster and removes all of it but what was built. It is no error
// if there is none.
func down(ctx context.Context, name, dir string) error {
	if s, err := cluster.ReadState(dir); err == nil {
		if err := end(ctx, s.PID); err != nil {
			return err
		}
	} else if !errors.Is(err, cluster.ErrNone) {
		return err
	}
	lock, err := cluster.Lock(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return removeControlGroups(dir)
	}
	if err != nil {
		return err
	}
	if lock == nil {
		return fmt.Errorf("another command is bringing %q up", name)
	}
	defer func() { _ = lock.Close() }()
	return errors.Join(removeControlGroups(dir), os.RemoveAll(dir))
}

// end kills the node's first process and waits for its end. The kernel ends
// every process of its namespace before it, and takes mounts, interfaces
// and addresses away with their namespaces.
func end(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && ctx.Err() == nil; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
		if err != nil && err != unix.EINTR {
			return os.NewSyscallError("poll", err)
		}
		if n == 1 {
			return nil
		}
	}
	return fmt.Errorf("process %d does not end", pid)
}
