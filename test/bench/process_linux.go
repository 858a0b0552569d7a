package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processCPU returns the CPU time that a process has used, of all its threads,
// those that have ended included. Unlike /proc/PID/stat, the clock counts in
// nanoseconds.
func processCPU(pid int) (time.Duration, error) {
	// A process's clock by pid, as clock_getcpuclockid(3) makes it.
	const schedulerClock = 2
	clock := int32(^pid)<<3 | schedulerClock
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// processMemory returns the resident set of a process in bytes.
func processMemory(pid int) (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("resident set of process %d: %w", pid, err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("/proc/%d/status names no resident set", pid)
}

// roomFor reports whether a process may have so many files open, sockets too.
func roomFor(files int) bool {
	var limit unix.Rlimit
	return unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil && limit.Cur >= uint64(files)
}
