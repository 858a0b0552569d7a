package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// initCommand is what up starts as the first process of the new namespaces.
const initCommand = "init"

// lockFD is what it holds the cluster's lock by, while it lives.
const lockFD = 3

// initialize is that process: it makes mounts and network, then starts what a
// node runs and keeps it running, until it is killed, and all with it.
func initialize(ctx context.Context, dir string) error {
	unix.CloseOnExec(lockFD)
	cache, err := cluster.Cache()
	if err != nil {
		return err
	}
	if err := mounts(); err != nil {
		return fmt.Errorf("mounts: %w", err)
	}
	if err := network(ctx); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	if err := controlGroups(dir); err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	components, err := components(dir)
	if err != nil {
		return err
	}
	// containerd unpacks images in there, and CNI plugins are found by it.
	for key, value := range map[string]string{
		"PATH":   filepath.Join(cache, "bin") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"TMPDIR": filepath.Join(dir, "tmp"),
	} {
		if err := os.Setenv(key, value); err != nil {
			return err
		}
	}
	go balance(ctx, filepath.Join(dir, "admin.conf"))
	return supervise(filepath.Join(dir, "log"), components)
}
