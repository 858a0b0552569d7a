package proxy

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestReapOrphans runs beInit as the first process of a namespace.
func TestReapOrphans(t *testing.T) {
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", os.Args[0])
	cmd.Env = append(os.Environ(), initEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(out), "unshare") {
		t.Skipf("this system lets nobody make a namespace: %s", out)
	}
	if err != nil || string(out) != "good\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// beInit has children of its own and orphans end, and reaps all the time: each of
// our own must be heard of by its Wait, and no orphan may stay.
func beInit() int {
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				children.reapOthers()
			}
		}
	}()
	for i := range 50 {
		p, err := launch(exec.Command("sh", "-c", "sleep 0.01 & exit 3"))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		<-p.done
		if p.exit.Code != 3 {
			fmt.Printf("child %d: exit code %d\n", i, p.exit.Code)
			return 1
		}
	}
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		left := others()
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			fmt.Printf("%d processes are left\n", left)
			return 1
		}
	}
	close(stop)
	<-stopped
	fmt.Println("good")
	return 0
}

// others counts the processes beside this one.
func others() (n int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return -1
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			n++
		}
	}
	return n
}
