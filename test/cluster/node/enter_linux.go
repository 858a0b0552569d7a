package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// join moves this thread into a process's network. For the main thread, exec
// then takes the whole process there.
func join(pid int) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return os.NewSyscallError("setns", unix.Setns(int(f.Fd()), unix.CLONE_NEWNET))
}

// inside runs one of the cluster's programs in its network, and returns what it
// prints.
func inside(ctx context.Context, dir, name string, args ...string) (string, error) {
	env, err := environment(dir)
	if err != nil {
		return "", err
	}
	cache, err := cluster.Cache()
	if err != nil {
		return "", err
	}
	c, err := cluster.OpenDir(dir)
	if err != nil {
		return "", err
	}
	if path := filepath.Join(cache, "bin", name); exists(path) {
		name = path
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := c.Start(cmd); err != nil {
		return "", err
	}
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(stdout.String()), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// load imports docker archives. containerd's socket is in the node's own /run,
// which others see through its process.
func load(ctx context.Context, dir string, archives []string) error {
	s, err := cluster.ReadState(dir)
	if err != nil {
		return err
	}
	socket := fmt.Sprintf("/proc/%d/root/run/containerd/containerd.sock", s.PID)
	if err := retry(ctx, func() error {
		_, err := output(ctx, "", "ctr", "--address", socket, "--namespace", "k8s.io", "version")
		return err
	}); err != nil {
		return err
	}
	var all error
	for _, archive := range archives {
		if _, err := output(ctx, "", "ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", archive); err != nil {
			all = errors.Join(all, err)
		}
	}
	return all
}
