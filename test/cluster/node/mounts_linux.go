package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mounts makes the node's own view of the machine. Where container runtimes
// leave things without being asked (/run/netns, /var/lib/cni, sockets of shims,
// /var/log/containers), it has memory of its own.
func mounts() error {
	// Nothing that is mounted here shows outside; within, containerd and the
	// kubelet share their mounts.
	for _, flag := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", unix.MS_REC|flag, ""); err != nil {
			return fmt.Errorf("propagation of /: %w", err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	for _, path := range []string{"/run", "/var/lib", "/var/log"} {
		if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID, "mode=0755"); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}
