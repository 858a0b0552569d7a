package terminal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// asScreen makes this test binary a process with a screen: which kind, says its value.
const asScreen = "GATEHOUSE_TEST_SCREEN"

func TestMain(m *testing.M) {
	if of := os.Getenv(asScreen); of != "" {
		serveScreen(of)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveScreen shows a screen until the process is told to stop, by a key or a signal.
func serveScreen(of string) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	keys := Keys{In: os.Stdin, Quit: func() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) }}
	if of == "no-keys" {
		keys = Keys{}
	}
	live := NewLive(os.Stdout, "manifests", keys)
	log := slog.New(live.Handler(slog.LevelInfo))
	log.Info("starting")
	done := make(chan struct{})
	panics := make(chan os.Signal, 1)
	signal.Notify(panics, syscall.SIGUSR1)
	show := func() view.View {
		select {
		case <-panics:
			panic("the view is broken")
		default:
		}
		return views()["many"]
	}
	if of == "noisy" { // logs all the time; how long a line takes is what others wait
		go func() {
			worst := time.Duration(0)
			for i := range 3000 {
				start := time.Now()
				log.Info(fmt.Sprintf("line %d", i), "filler", strings.Repeat("x", i%400))
				worst = max(worst, time.Since(start))
				time.Sleep(time.Millisecond) // so that frames are drawn between
			}
			_ = os.WriteFile(os.Getenv("GATEHOUSE_TEST_FILE"), fmt.Appendf(nil, "%v", worst), 0o600)
		}()
	}
	go func() {
		<-signals
		live.Stopping()
		close(done)
	}()
	go func() {
		for range panics {
			panics <- syscall.SIGUSR1
			live.Changed()
			return
		}
	}()
	live.Run(done, show)
}

// driven is a process with a screen, and its terminal.
type driven struct {
	t      *testing.T
	person *os.File
	cmd    *exec.Cmd
	before *unix.Termios
	exited chan struct{} // closed once it has

	mu   sync.Mutex
	seen string // by the person, and not yet waited for
	news chan struct{}
}

// drive starts a process with a screen on a terminal of its own.
func drive(t *testing.T, of string, env ...string) *driven {
	t.Helper()
	person, program := openTerminal(t)
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, person: person, before: before, exited: make(chan struct{}), news: make(chan struct{}, 1)}
	d.cmd = exec.Command(os.Args[0])
	d.cmd.Env = append(os.Environ(), append(env, asScreen+"="+of, "NO_COLOR=1", "TERM=xterm")...)
	d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr = program, program, program
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = d.cmd.Wait()
		close(d.exited)
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.exited
	})
	return d
}

// watch makes the person look at the terminal.
func (d *driven) watch() *driven {
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := d.person.Read(buf)
			d.mu.Lock()
			d.seen += string(buf[:n])
			d.mu.Unlock()
			select {
			case d.news <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return d
}

const soon = 20 * time.Second

// until waits for a text on the terminal, and returns what came before it.
func (d *driven) until(text string) string {
	d.t.Helper()
	timeout := time.After(soon)
	for {
		d.mu.Lock()
		before, after, ok := strings.Cut(d.seen, text)
		if ok {
			d.seen = after
			d.mu.Unlock()
			return before
		}
		seen := d.seen
		d.mu.Unlock()
		select {
		case <-d.news:
		case <-timeout:
			d.t.Fatalf("no %q within %s, after %q", text, soon, seen)
		}
	}
}

func (d *driven) types(text string) {
	d.t.Helper()
	if _, err := d.person.WriteString(text); err != nil {
		d.t.Fatal(err)
	}
}

func (d *driven) signal(s os.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

// ended waits until the process has ended.
func (d *driven) ended() {
	d.t.Helper()
	select {
	case <-d.exited:
	case <-time.After(soon):
		d.t.Fatal("the process goes on")
	}
}

// mode is that of the terminal now.
func (d *driven) mode() unix.Termios {
	d.t.Helper()
	mode, err := unix.IoctlGetTermios(int(d.person.Fd()), unix.TCGETS)
	if err != nil {
		d.t.Fatal(err)
	}
	return *mode
}

// restored checks that the terminal is as it was.
func (d *driven) restored() {
	d.t.Helper()
	if mode := d.mode(); mode != *d.before {
		d.t.Errorf("the terminal's mode is\n%+v, and was\n%+v", mode, *d.before)
	}
}

// TestKeys protects whoever looks for one object among many: keys lead to it.
func TestKeys(t *testing.T) {
	d := drive(t, "many").watch()
	d.until("q quit  ↑↓ scroll  Enter all  p problems  f filter  / search  ? help")
	for _, step := range []struct{ keys, want string }{
		{"j", "2-22 of "},
		{"\x1b[B", "3-23 of "}, // an arrow
		{"k\x1bOA", "1-21 of "},
		{"\x1b[6~", "21-41 of "},
		{" ", "41-61 of "},
		{"b\x1b[5~", "1-21 of "},
		{"G", "LOG"},
		{"g", "1-21 of "},
		{"/HOST-123.\r", ">"},
		{"", "HTTPRoute default/route-123"},
		{"/route-1\r", "/route-1 n N"},
		{"nn", "> HTTPRoute default/route-118"},
		{"N", "> HTTPRoute default/route-117"},
		{"/nowhere\r", "not found: nowhere"},
		{"\x1b", "q quit  ↑↓ scroll"},
		{"p", "only problems  1-"},
		{"p", "1-21 of "},
		{"fhttproute route-3x\x7f49\r", "default/missing-349"},
		{"", "filter httproute route-349  1-"},
		{"?", "KEYS"},
		{"x", "filter httproute route-349"}, // back
		{"\x1b", "q quit  ↑↓ scroll"},
		{"\r", "manifests/bad-5.yaml:12: HTTPRoute default/bad-5"}, // equal ones, one by one
		{"\x1b", "Enter all"},
		{"\x1b[200~q\rq\x1b[201~?", "KEYS"}, // what is pasted is no command
		{"?", "Enter all"},
	} {
		d.types(step.keys)
		d.until(step.want)
	}
	if mode := d.mode(); mode.Lflag&(unix.ECHO|unix.ICANON) != 0 {
		t.Error("what is typed appears on the screen")
	}
	d.types("q")
	last := d.until(leave) + d.until("stopped")
	d.ended()
	d.restored()
	if strings.Contains(last, "nowhere") {
		t.Errorf("what was typed is among what is left: %q", last)
	}
}

// TestTerminalIsGivenBack protects the user's terminal, whatever ends the screen.
func TestTerminalIsGivenBack(t *testing.T) {
	for name, end := range map[string]func(d *driven){
		"q":        func(d *driven) { d.types("q") },
		"ctrl-c":   func(d *driven) { d.types("\x03") },
		"sigterm":  func(d *driven) { d.signal(syscall.SIGTERM) },
		"panic":    func(d *driven) { d.signal(syscall.SIGUSR1) },
		"sigquit":  func(d *driven) { d.types("\x1c") },
		"after ^S": func(d *driven) { d.types("\x13"); d.signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := drive(t, "many").watch()
			d.until("? help")
			end(d)
			d.until(leave)
			d.ended()
			d.restored()
		})
	}
	t.Run("no keys", func(t *testing.T) {
		t.Parallel()
		d := drive(t, "no-keys").watch()
		if screen := d.until("TRY"); strings.Contains(screen, "q quit") {
			t.Error("keys are offered that nobody reads")
		}
		d.types("\x03")
		d.until(leave)
		d.ended()
		d.restored()
	})
}

// TestSuspended protects whoever suspends the process with Ctrl-Z: the terminal is theirs
// until fg, and the screen's again then.
func TestSuspended(t *testing.T) {
	d := drive(t, "many").watch()
	d.until("? help")
	for range 2 {
		d.types("\x1a")
		d.until(leave)
		d.is("T")
		d.restored()
		d.signal(syscall.SIGCONT)
		d.until(enter)
		d.until("? help")
		d.types("j")
		d.until("2-22 of ")
		d.types("\x1b")
		d.until("? help")
	}
	d.types("q")
	d.until(leave)
	d.ended()
	d.restored()
}

// is waits until the process is in a state, as /proc has it.
func (d *driven) is(state string) {
	d.t.Helper()
	for deadline := time.Now().Add(soon); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
		if err != nil {
			d.t.Fatal(err)
		}
		if strings.HasPrefix(string(text[strings.LastIndexByte(string(text), ')')+1:]), " "+state) {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("the process is not in state %s: %s", state, text)
		}
	}
}

// TestResize protects the screen while somebody drags the corner of the window.
func TestResize(t *testing.T) {
	d := drive(t, "many").watch()
	d.until("? help")
	d.types("j")
	d.until("2-22 of ")
	if err := unix.IoctlSetWinsize(int(d.person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
		t.Fatal(err)
	}
	d.until("2-38 of ")
}

// TestStoppedTerminal protects what is served from a terminal that takes nothing: who logs
// does not wait for it, and neither does the end of the process.
func TestStoppedTerminal(t *testing.T) {
	file := t.TempDir() + "/worst"
	d := drive(t, "noisy", "GATEHOUSE_TEST_FILE="+file) // nobody looks
	var worst []byte
	for deadline := time.Now().Add(3 * soon); len(worst) == 0; time.Sleep(50 * time.Millisecond) {
		worst, _ = os.ReadFile(file)
		if time.Now().After(deadline) {
			t.Fatal("who logs waits for the terminal")
		}
	}
	if took, err := time.ParseDuration(string(worst)); err != nil || took > time.Second {
		t.Errorf("a line of the log took %s (%v)", worst, err)
	}
	d.signal(syscall.SIGTERM)
	d.ended()
	d.restored()
}

// TestWithoutTerminal protects a screen whose terminal has gone: it ends like any other.
func TestWithoutTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer w.Close()
	live := NewLive(w, "manifests", Keys{In: w, Quit: func() { t.Error("it quits by itself") }})
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		live.Run(done, func() view.View { return views()["quick"] })
	}()
	live.Changed()
	close(done)
	select {
	case <-finished:
	case <-time.After(soon):
		t.Fatal("the screen goes on")
	}
	if _, err := w.WriteString("x"); !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
}
