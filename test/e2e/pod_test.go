//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// pod is the process of a pod, which answers the kubelet.
type pod struct {
	*exec.Cmd
	health         string
	stdout, stderr bytes.Buffer
	done           chan struct{}
}

// run starts the process, for the time of the test at most.
func (p *pod) run(t *testing.T) {
	t.Helper()
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	p.done = make(chan struct{})
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(p.done); _ = p.Wait() }()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("gatehouse %s:\n%s", p.Args[1], p.stderr.String())
		}
	})
}

func (p *pod) get(path string) (int, string) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get("http://" + p.health + path)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(body)
}

func (p *pod) ready() error {
	if code, text := p.get("/readyz"); code != http.StatusOK {
		return fmt.Errorf("/readyz: %d %s", code, text)
	}
	return nil
}

func (p *pod) signal(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func (p *pod) ends(t *testing.T) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(siteTimeout):
		t.Fatal("it does not end")
	}
	if code := p.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
