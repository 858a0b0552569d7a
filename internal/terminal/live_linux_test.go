package terminal

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// openTerminal returns the two ends of a terminal of 80x24: the one that a person
// looks at, and the one that the program writes to.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// TestLiveGivesTheTerminalBack protects the terminal of the user: the screen is the
// alternate one, and what is left on the ordinary one is the last state, without a
// claim that something serves, and the errors.
func TestLiveGivesTheTerminalBack(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	person, program := openTerminal(t)
	live := NewLive(program, "manifests", Keys{})
	log := slog.New(live.Handler(slog.LevelInfo)).With("gateway", "default/web")
	log.Info("envoy started", "pid", 4711)
	log.Error("envoy ended", "reason", "exit code 1")
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		live.Run(done, func() view.View { return views()["quick"] })
		fmt.Fprint(program, "$ ")
	}()
	var seen strings.Builder
	until := func(text string) string {
		buf := make([]byte, 4096)
		for !strings.Contains(seen.String(), text) {
			n, err := person.Read(buf)
			seen.Write(buf[:n])
			if err != nil && err != io.EOF {
				t.Fatalf("%v, after %q", err, seen.String())
			}
		}
		before, after, _ := strings.Cut(seen.String(), text)
		seen.Reset()
		seen.WriteString(after)
		return before
	}
	until(enter)
	screen := until("envoy ended gateway=default/web reason=\"exit code 1\"")
	for _, want := range []string{"ready", "Programmed", "curl http://127.0.0.1:8080/", "envoy started gateway=default/web pid=4711"} {
		if !strings.Contains(screen, want) {
			t.Errorf("the screen lacks %q: %q", want, screen)
		}
	}
	live.Stopping()
	until("stopping (Ctrl-C again to end now)")
	close(done)
	until(leave)
	last := until("$ ")
	<-finished
	if !strings.Contains(last, "stopped") || !strings.Contains(last, "envoy ended") {
		t.Errorf("what is left lacks the last state or the error: %q", last)
	}
	for _, unwanted := range []string{"ready", "Programmed", "envoy started", "\x1b"} {
		if strings.Contains(last, unwanted) {
			t.Errorf("what is left has %q: %q", unwanted, last)
		}
	}
}
