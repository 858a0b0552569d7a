//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAccessLogFlag protects that whoever runs Gatehouse sees requests in a file of his own soon after they were sent.
func TestAccessLogFlag(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.json")
	s := startSite(t, nil, "--access-log", file)
	if _, err := s.call("http://home.example/looked-for"); err != nil {
		t.Fatal(err)
	}
	sent := time.Now()
	eventually(t, siteTimeout, func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(text) {
			var entry struct {
				Path      string `json:"path"`
				Authority string `json:"authority"`
				Code      int    `json:"response_code"`
				Gateway   string `json:"gateway"`
				Route     string `json:"route"`
			}
			if err := json.Unmarshal(line, &entry); err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
			if entry.Path == "/looked-for" && entry.Authority == "home.example" && entry.Code == 200 {
				if entry.Gateway != siteNamespace+"/gw" || entry.Route != "HTTPRoute/"+siteNamespace+"/home/0/0" {
					return permanent(fmt.Errorf("the request went by route %q of Gateway %q", entry.Route, entry.Gateway))
				}
				return nil
			}
		}
		return fmt.Errorf("the request isn't among %d bytes", len(text))
	})
	if took := time.Since(sent); took > 5*time.Second {
		t.Errorf("the line came after %s", took)
	}
}
