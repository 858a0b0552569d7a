package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processIdentity is a name of the process that no other one ever has: a pid
// may be given out again, but not with the same start time in the same boot.
// A zombie has no identity, since it serves nothing and may stay for ever
// where nobody reaps it.
func processIdentity(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is the name in parentheses and may contain anything,
	// so fields are counted behind its end: state is field 3, start time 22.
	i := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[i+1:]))
	if i < 0 || len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat: %q", pid, stat)
	}
	if state := fields[0]; state == "Z" || state == "X" {
		return "", errGone
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[19], nil
}

// peer returns the process that listens at the other end of a Unix socket, 0 if the
// kernel doesn't tell: the process may be in another container.
func peer(conn net.Conn) int {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) {
		if c, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(c.Pid)
		}
	})
	return pid
}

func processAlive(p *os.Process, identity string) bool {
	now, err := processIdentity(p.Pid)
	return err == nil && now == identity
}

// mainThread tells what the main thread of a process has used of a processor, 0 if the
// system doesn't tell, and whether it would run if it were given one. The kernel may be
// built without the file that has the time exactly, or fill it with zeros.
func mainThread(pid int) (used time.Duration, runnable bool) {
	thread := fmt.Sprintf("/proc/%d/task/%d/", pid, pid)
	stat, err := os.ReadFile(thread + "stat")
	if err != nil {
		return 0, false
	}
	// As in processIdentity; the state is field 3, utime and stime are 14 and 15, in
	// hundredths.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, false
	}
	runnable = fields[0] == "R"
	if exact, err := os.ReadFile(thread + "schedstat"); err == nil {
		if ns, _, _ := strings.Cut(string(exact), " "); ns != "0" {
			n, _ := strconv.ParseInt(ns, 10, 64)
			return time.Duration(n), runnable
		}
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, _ := strconv.ParseInt(field, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100), runnable
}

// awaitEnd returns when a process has ended that is not our child: the kernel tells
// who has opened it.
func awaitEnd(p *os.Process, identity string) {
	fd, err := unix.PidfdOpen(p.Pid, 0)
	if err != nil {
		watchAlive(p, identity) // before Linux 5.3, or where it is forbidden
		return
	}
	defer func() { _ = unix.Close(fd) }()
	// The pid may have been given out again before it was opened.
	for processAlive(p, identity) {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			watchAlive(p, identity)
			return
		}
	}
}

// raiseFileLimit lets the process open as many files as the system allows: the
// usual soft limit of 1,024 is few for a proxy, and the Go runtime gives its
// children back the one that it was started with.
func raiseFileLimit(pid int) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil)
}
