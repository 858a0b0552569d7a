package configuration

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Where events get lost, the file is read again, and no configuration counts as refused.
func TestLostEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "configuration.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(head)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	told := make(chan string, 16)
	w := Watched{
		Changed: func(c *Configuration, _ []byte) { told <- "changed to " + c.ControllerName },
		Refused: func(error) { told <- "refused" },
		Missed:  func(err error) { told <- "missed: " + err.Error() },
	}
	write(head + "controllerName: example.com/zero\n") // since the file was loaded
	failures, done := make(chan error), make(chan struct{})
	go func() {
		defer close(done)
		w.follow(ctx, path, []byte(head), make(chan fsnotify.Event), failures)
	}()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-told:
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("nothing, want %s", want)
		}
	}
	next("changed to example.com/zero")
	lost := errors.New("overflow")
	write(head + "controllerName: example.com/one\n")
	failures <- lost
	next("missed: watch configuration: overflow")
	next("changed to example.com/one")
	write(head + "nonsense: 1\n")
	failures <- lost
	next("missed: watch configuration: overflow")
	next("refused")
	cancel()
	<-done
}
