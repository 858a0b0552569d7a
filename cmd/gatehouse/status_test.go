package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStatusOfStopped protects a person from a long wait for a process that stands still:
// its socket takes connections, and nobody answers.
func TestStatusOfStopped(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = fetchView(t.Context(), socket, 50*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), dir+" runs, but has not answered within 50ms: it may be stopped") {
		t.Errorf("the error is %v", err)
	}
}
