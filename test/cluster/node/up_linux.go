package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// upTimeout is for everything but the build: half a minute, on two cores that
// have nothing else to do.
const upTimeout = 5 * time.Minute

// up starts a cluster, and returns when it is of use. One that can't be is
// removed again.
func up(ctx context.Context, name, dir, channel string) (err error) {
	if s, err := cluster.ReadState(dir); err == nil {
		if s.Channel != channel {
			return fmt.Errorf("%q runs already, with the %s channel, brought up from %s: `node down` ends it", name, s.Channel, s.Checkout)
		}
		fmt.Printf("%q runs already, brought up from %s\n", name, s.Checkout)
		return nil
	}
	if strings.HasPrefix(dir, "/var/") || strings.HasPrefix(dir, "/run/") {
		return fmt.Errorf("%s is where the node has mounts of its own: set GATEHOUSE_CACHE to a directory outside /var and /run", dir)
	}
	b, err := build(ctx)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(b.crds, channel)); err != nil {
		return fmt.Errorf("channel %q: want experimental or standard", channel)
	}
	// What a node left that was killed, or the machine with it.
	if err := down(ctx, name, dir); err != nil {
		return err
	}
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	if err := start(name, dir, channel, b); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nlogs were in %s; the last of them:\n%s", err, dir, tail(filepath.Join(dir, "log")))
			err = errors.Join(err, down(context.WithoutCancel(ctx), name, dir))
		}
	}()
	if err := populate(ctx, dir, channel, b); err != nil {
		return err
	}
	fmt.Printf("%q is up with the %s channel, after %v; try: go run ./test/cluster/node exec kubectl get pods -A\n",
		name, channel, time.Since(started).Round(time.Second))
	return nil
}

// start starts the node's first process.
func start(name, dir, channel string, b built) error {
	for _, sub := range []string{"log/pods", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	lock, err := cluster.Lock(dir)
	if err != nil {
		return err
	}
	if lock == nil {
		return fmt.Errorf("another command is bringing %q up", name)
	}
	defer func() { _ = lock.Close() }()
	if err := credentials(dir); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "log", "node.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(self, initCommand, "--name", name)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock} // lockFD
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Setsid:     true, // it outlives this command and its terminal
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cluster.WriteState(dir, cluster.State{PID: cmd.Process.Pid, Channel: channel, Checkout: b.root})
}

// populate waits for the node, and gives it images, CRDs and DNS.
func populate(ctx context.Context, dir, channel string, b built) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		var archives []string
		for _, archive := range b.images {
			archives = append(archives, archive)
		}
		return load(ctx, dir, archives)
	})
	group.Go(func() error {
		if err := retry(ctx, func() error {
			_, err := inside(ctx, dir, "kubectl", "get", "--raw", "/readyz")
			return err
		}); err != nil {
			return err
		}
		crds, err := filepath.Glob(filepath.Join(b.crds, channel, "gateway*.yaml"))
		if err != nil {
			return err
		}
		apply := []string{"apply", "--server-side", "-f", filepath.Join(b.root, "test", "cluster", "node", "dns.yaml")}
		for _, file := range crds {
			apply = append(apply, "-f", file)
		}
		if _, err := inside(ctx, dir, "kubectl", apply...); err != nil {
			return err
		}
		if err := retry(ctx, func() error {
			_, err := inside(ctx, dir, "kubectl", "wait", "--for=condition=Ready", "node/"+nodeName, "--timeout=10s")
			return err
		}); err != nil {
			return err
		}
		_, err = inside(ctx, dir, "kubectl", "rollout", "status", "-n", "kube-system", "deployment/coredns", "--timeout=2m")
		return err
	})
	return group.Wait()
}

// retry calls f until it succeeds.
func retry(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// tail is the end of each log, for who has to find out.
func tail(dir string) []byte {
	var all []byte
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, path := range logs {
		if filepath.Base(path) == "audit.log" {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		all = append(append(all, "== "+path+"\n"...), data[max(0, len(data)-1500):]...)
	}
	return all
}
