package child_test

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/child"
)

// TestThreadsEnd protects children from the end of this process's threads: to the kernel
// a thread is a child's parent, and the end of one that had started a child was the end
// of the child, in the middle of some test.
func TestThreadsEnd(t *testing.T) {
	for range 20 {
		cmd := exec.Command("sleep", "60")
		ended, err := child.Start(cmd, syscall.SIGKILL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Kill()
			<-ended
		}()
		endThreads()
		select {
		case <-ended:
			t.Fatalf("the child ended: %s", cmd.ProcessState)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// endThreads ends all threads but those that are needed.
func endThreads() {
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { runtime.LockOSThread() }) // a goroutine that ends locked takes its thread along
	}
	all.Wait()
}
