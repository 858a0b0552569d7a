package proxy

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// echoing answers every connection with what it says, until the test ends.
func echoing(t *testing.T, path string) *Socket {
	t.Helper()
	s, err := ListenSocket(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := s.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { _, _ = io.Copy(conn, conn); conn.Close() })
		}
	})
	t.Cleanup(func() { s.Close(); serving.Wait() })
	return s
}

// said sends a word and waits for its echo.
func said(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := fmt.Fprint(conn, "word"); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 4))
	return err
}

func dialed(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := said(conn); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A cleaner of temporary files costs nobody the socket: neither those who are
// connected nor those who come.
func TestSocketIsMadeAnew(t *testing.T) {
	dir := filepath.Join(shortDir(t), "d")
	path := filepath.Join(dir, "s")
	s := echoing(t, path)
	before := dialed(t, path)
	for _, gone := range []string{dir, path} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
		if err := s.Restore(); err != nil {
			t.Fatal(err)
		}
		dialed(t, path)
	}
	if err := said(before); err != nil {
		t.Errorf("the connection from before: %v", err)
	}
	// Nobody needs to ask for it.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the socket is back", func() bool {
		conn, err := net.Dial("unix", path)
		if err != nil {
			return false
		}
		defer conn.Close()
		return said(conn) == nil
	})
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info, err)
	}
}

func TestSocketCloses(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	first := echoing(t, path)
	// Another one at the same path is not removed with the first.
	second := echoing(t, path)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	dialed(t, path)
	if err := first.Restore(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("restored after its end: %v", err)
	}
	for range 2 {
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	if _, err := second.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepted after its end: %v", err)
	}
}

// waitFor polls until ok.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(probeFirst)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not so: %s", what)
		}
	}
}
