package port_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse/test/port"
)

const asked = 1500

// TestMain takes ports and holds them, in the processes that the test starts.
func TestMain(m *testing.M) {
	if os.Getenv("HOLD") == "" {
		os.Exit(m.Run())
	}
	for range asked {
		n, err := port.Free()
		if err != nil {
			panic(err)
		}
		fmt.Println(n)
	}
	fmt.Println("held")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// TestFree protects a test's port from the tests of other packages, which run in processes
// of their own: two of them listened on the same port, and one had to fail.
func TestFree(t *testing.T) {
	owner := map[string]int{}
	take := func(who int, text string) {
		for p := range strings.FieldsSeq(text) {
			if other, ok := owner[p]; ok {
				t.Errorf("%s is given to %d and to %d", p, other, who)
			}
			owner[p] = who
		}
	}
	for who := range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "HOLD=yes")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out := &said{ready: make(chan struct{})}
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
		<-out.ready
		take(who, strings.TrimSuffix(out.text.String(), "held\n"))
	}
	if len(owner) < 3*asked {
		t.Errorf("%d ports of %d", len(owner), 3*asked)
	}
}

// TestFreeWhileProcessesStart protects a test that starts a process while another looks for
// a port: the new process had a copy of the socket that was tried, for as long as its own
// program had not begun, and whoever was given the port could not listen.
func TestFreeWhileProcessesStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			for ctx.Err() == nil {
				_ = exec.Command("/bin/true").Run() // what it does is of no matter
			}
		})
	}
	defer starting.Wait()
	defer cancel()
	for range 1000 {
		address := port.AddressOfTest(t)
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
	}
}

// said is what a process says until it holds its ports.
type said struct {
	text  strings.Builder
	ready chan struct{}
}

func (s *said) Write(b []byte) (int, error) {
	s.text.Write(b)
	if strings.HasSuffix(s.text.String(), "held\n") {
		close(s.ready)
	}
	return len(b), nil
}
