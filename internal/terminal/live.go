package terminal

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// Control sequences of a terminal. The screen is the alternate one, so that what
// was on the terminal before is there again afterwards. Lines don't wrap: one that
// is wider than it seems must not shift the others.
const (
	enter     = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leave     = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	beginSync = "\x1b[?2026h" // terminals that know it show a frame as a whole
	endSync   = "\x1b[?2026l"
)

// Live shows the state of everything on a terminal and keeps it up to date. Its
// Handler takes the log, which has no other place while the screen is on.
type Live struct {
	out   *os.File
	title string
	style Style

	mu    sync.Mutex
	log   []LogLine
	phase Phase
	on    bool     // the terminal shows the screen
	shown []string // what it shows, line by line
	wake  chan struct{}
}

// NewLive returns a live screen on a terminal.
func NewLive(out *os.File, title string) *Live {
	return &Live{out: out, title: title, style: StyleFor(out), wake: make(chan struct{}, 1)}
}

// Handler returns a handler for the log.
func (l *Live) Handler(level slog.Level) slog.Handler {
	return &screenHandler{live: l, level: level}
}

// keptLines is how many log lines the screen remembers.
const keptLines = 100

func (l *Live) add(line LogLine) {
	l.mu.Lock()
	l.log = append(l.log, line)
	if n := len(l.log) - keptLines; n > 0 {
		l.log = append([]LogLine(nil), l.log[n:]...)
	}
	if l.phase == Stopped {
		fmt.Fprintln(os.Stderr, line.Plain())
	}
	l.mu.Unlock()
	l.Changed()
}

// Changed asks for a redraw. It never blocks.
func (l *Live) Changed() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Stopping says that the Envoys are draining.
func (l *Live) Stopping() {
	l.mu.Lock()
	l.phase = max(l.phase, Stopping)
	l.mu.Unlock()
	l.Changed()
}

// frame is the shortest time between two redraws.
const frame = 100 * time.Millisecond

// Run shows the screen until done is closed, then gives the terminal back and
// prints the last state on it, with the errors that the screen has shown.
func (l *Live) Run(done <-chan struct{}, view func() view.View) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT)
	defer signal.Stop(signals)
	quiet := silence(os.Stdin)
	l.enter()
	defer func() {
		l.leave()
		quiet.restore()
		l.farewell(view())
	}()
	for {
		l.draw(view())
		select {
		case <-done:
			return
		case <-l.wake:
		case s := <-signals:
			l.signalled(s, quiet)
			continue // at once
		}
		select {
		case <-done:
		case s := <-signals:
			l.signalled(s, quiet)
		case <-time.After(frame):
		}
	}
}

// signalled keeps the screen whole when the window changes its size, and gives the
// terminal back while the process is suspended.
func (l *Live) signalled(s os.Signal, quiet *terminalMode) {
	switch s {
	case syscall.SIGTSTP:
		l.leave()
		quiet.restore()
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // goes on here after SIGCONT
		quiet.apply()
		l.enter()
	case syscall.SIGWINCH:
		l.mu.Lock()
		l.shown = nil
		l.mu.Unlock()
	}
}

func (l *Live) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on, l.shown = true, nil
	fmt.Fprint(l.out, enter)
}

func (l *Live) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.on {
		l.on = false
		fmt.Fprint(l.out, leave)
	}
}

func (l *Live) screen() Screen {
	width, height, err := term.GetSize(int(l.out.Fd()))
	if err != nil || width < 20 || height < 2 {
		width, height = 80, 24
	}
	return Screen{Title: l.title, Width: width, Height: height, Phase: l.phase, Log: l.log, Style: l.style}
}

// draw writes the lines that differ from what is shown.
func (l *Live) draw(v view.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	screen := l.screen()
	lines := screen.Frame(v)
	var b strings.Builder
	if l.shown == nil {
		b.WriteString("\x1b[2J")
	}
	for i, line := range lines {
		if i >= len(l.shown) || l.shown[i] != line {
			fmt.Fprintf(&b, "\x1b[%d;1H%s", i+1, line)
			if visible(line) < screen.Width { // else it would take the last character away
				b.WriteString("\x1b[K")
			}
		}
	}
	if len(lines) < len(l.shown) {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[J", len(lines)+1)
	}
	l.shown = lines
	if b.Len() > 0 {
		fmt.Fprint(l.out, beginSync+b.String()+endSync)
	}
}

// farewell prints the last state, and what must not be lost with the screen.
func (l *Live) farewell(v view.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = Stopped
	screen := l.screen()
	screen.Height = min(screen.Height, 24) // it scrolls by, and `status --once` tells all
	for _, line := range screen.Frame(v) {
		fmt.Fprintln(l.out, line)
	}
	first := true
	for _, line := range l.log {
		if line.Level < slog.LevelError {
			continue
		}
		if first {
			fmt.Fprintln(l.out)
			first = false
		}
		for _, text := range line.lines(l.style, screen.Width) {
			fmt.Fprintln(l.out, text)
		}
	}
}
