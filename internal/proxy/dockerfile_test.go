package proxy

import (
	"os"
	"strings"
	"testing"
)

// The image has the Envoy that Gatehouse generates configuration for.
func TestDockerfile(t *testing.T) {
	data, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nFROM envoyproxy/envoy:distroless-v" + InstallVersion + "\n"; !strings.Contains(string(data), want) {
		t.Errorf("Dockerfile: want %q", strings.TrimSpace(want))
	}
}
