//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// envoyStats asks the process's only Envoy for its counters of that prefix.
func (p *process) envoyStats(t *testing.T, filter string) map[string]int64 {
	t.Helper()
	var answer struct {
		Stats []struct {
			Name  string `json:"name"`
			Value any    `json:"value"` // a number, or a text for some
		} `json:"stats"`
	}
	p.askEnvoy(t, "/stats?format=json&filter="+filter, &answer)
	out := map[string]int64{}
	for _, s := range answer.Stats {
		if n, ok := s.Value.(float64); ok {
			out[s.Name] = int64(n)
		}
	}
	return out
}

// askEnvoy asks the process's only Envoy for JSON.
func (p *process) askEnvoy(t *testing.T, path string, answer any) {
	t.Helper()
	if err := json.Unmarshal(p.envoySays(t, path), answer); err != nil {
		t.Fatal(err)
	}
}

// envoySays returns what the admin interface of the process's only Envoy answers.
func (p *process) envoySays(t *testing.T, path string) []byte {
	t.Helper()
	sockets, err := filepath.Glob(filepath.Join(p.state, "g", "*", "admin.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("admin sockets of Envoys: %v %v; want one", sockets, err)
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", sockets[0])
		},
	}}
	res, err := client.Get("http://envoy" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// envoyCost is what the process's only Envoy has allocated, and how long its main thread has
// run.
func (p *process) envoyCost(t *testing.T) (bytes int64, main time.Duration) {
	t.Helper()
	var memory struct {
		Allocated int64 `json:"allocated,string"`
	}
	p.askEnvoy(t, "/memory", &memory)
	pid := p.envoyPID(t)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &main); err != nil {
		t.Fatal(err)
	}
	return memory.Allocated, main
}

// envoyPID returns the id of the process's only Envoy.
func (p *process) envoyPID(t *testing.T) int {
	t.Helper()
	pids := p.envoys()
	if len(pids) != 1 {
		t.Fatalf("Envoys: %v, want one", pids)
	}
	return pids[0]
}

// sameStats compares the counters named, which must be there.
func sameStats(before, after map[string]int64, names ...string) error {
	var d differences
	for _, name := range names {
		old, ok := before[name]
		if !ok {
			d.add("Envoy has no counter %s", name)
		}
		d.same(name, fmt.Sprint(old), fmt.Sprint(after[name]))
	}
	return d.err()
}
