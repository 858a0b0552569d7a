package terminal

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	askPaste  = "\x1b[?2004h" // texts that are pasted come between marks
	endPaste  = "\x1b[?2004l"
	beginSync = "\x1b[?2026h" // terminals that know it show a frame as a whole
	endSync   = "\x1b[?2026l"
)

// Live shows the state of everything on a terminal and keeps it up to date. Its
// Handler takes the log, which has no other place while the screen is on.
//
// A terminal that takes nothing holds up neither who logs nor Run: see painter.
type Live struct {
	in, out *os.File
	title   string
	style   Style
	quit    func() // nil where no keys are read

	wake chan struct{}
	mode *terminalMode

	mu    sync.Mutex
	log   []LogLine
	phase Phase

	painter atomic.Pointer[painter] // nil before Run
	on      atomic.Bool             // the terminal shows the screen

	// Run's own.
	browser *browser
	view    view.View
	before  string // to be written before the next picture
}

// Keys are where a person types, and what is called when they want to quit. Without them the
// screen is shown and can't be driven.
type Keys struct {
	In   *os.File
	Quit func()
}

// NewLive returns a live screen on a terminal.
func NewLive(out *os.File, title string, keys Keys) *Live {
	l := &Live{in: keys.In, out: out, title: title, style: StyleFor(out), quit: keys.Quit, wake: make(chan struct{}, 1), browser: newBrowser()}
	if l.in == nil || !term.IsTerminal(int(l.in.Fd())) {
		l.quit = nil
	}
	if l.in == nil {
		l.in = os.Stdin
	}
	l.mode = newMode(l.in, l.quit != nil)
	return l
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
	stopped := l.phase == Stopped
	l.mu.Unlock()
	if stopped {
		fmt.Fprintln(os.Stderr, line.Plain())
	}
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

const (
	// frame is the shortest time between two redraws for what has changed; keys don't wait.
	frame = 100 * time.Millisecond
	// patience is how long a terminal may take to be given back.
	patience = time.Second
	// background is how often it looks whether the terminal is ours again.
	background = 500 * time.Millisecond
)

// Run shows the screen until done is closed, then gives the terminal back and
// prints the last state on it, with the errors that the screen has shown.
func (l *Live) Run(done <-chan struct{}, view func() view.View) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGQUIT)
	defer signal.Stop(signals)
	painter := newPainter(l.out)
	defer painter.close()
	l.painter.Store(painter)
	defer l.GiveBack() // when something here panics

	keyboard, ended := newKeyboard(l.in), make(chan struct{})
	defer close(ended)
	if l.quit != nil {
		go keyboard.run(ended)
	}
	l.view = view()
	l.resume(keyboard)
	var again <-chan time.Time // when the view may be asked for the next time
	l.draw()
	for stale := false; ; {
		var ours <-chan time.Time
		if !l.on.Load() {
			ours = time.After(background)
		}
		select {
		case <-done:
			keyboard.paused(true)
			l.farewell(view())
			return
		case <-l.wake:
			stale = true
		case <-again:
			again = nil
		case k := <-keyboard.keys:
			l.typed(k)
			l.draw()
		case s := <-signals:
			l.signalled(s, keyboard)
			l.draw()
		case <-ours:
			l.resume(keyboard)
			l.draw()
		}
		if stale && again == nil {
			l.view, stale, again = view(), false, time.After(frame)
			l.browser.stale = true
			l.draw()
		}
	}
}

// typed does what a key asks for.
func (l *Live) typed(k keystroke) {
	if k.key == keyRedraw {
		l.before += "\x1b[2J"
		return
	}
	if !l.browser.take(k) {
		return
	}
	l.mu.Lock()
	serving := l.phase == Serving
	l.mu.Unlock()
	if serving { // a second q must not cut clients off; a second Ctrl-C does
		l.quit()
	}
}

// signalled keeps the screen whole when the window changes its size, and gives the
// terminal back while the process is suspended.
func (l *Live) signalled(s os.Signal, k *keyboard) {
	switch s {
	case syscall.SIGTSTP:
		k.paused(true)
		l.GiveBack()
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // which may take a moment
	case syscall.SIGCONT: // it was stopped, and others may have used the terminal
		l.resume(k)
	case syscall.SIGWINCH:
		l.before += "\x1b[2J"
		l.browser.stale = true
	case syscall.SIGQUIT: // which prints what all goroutines do
		l.GiveBack()
		signal.Reset(syscall.SIGQUIT)
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
	}
}

// resume takes the terminal, if it is ours: a job in the background leaves it alone.
func (l *Live) resume(k *keyboard) {
	if !foreground(l.out) {
		l.on.Store(false)
		return
	}
	l.mode.apply()
	k.paused(false)
	l.before = enter
	if l.quit != nil {
		l.before += askPaste
	}
	l.on.Store(true)
}

// GiveBack gives the terminal back if the screen is on it: for a while, or because the
// process is about to end. It may be called at any time, and from any goroutine.
func (l *Live) GiveBack() {
	if !l.on.Swap(false) {
		return
	}
	l.mode.unblock()
	text := leave
	if l.quit != nil {
		text = endPaste + leave
	}
	l.painter.Load().write(text, patience)
	l.mode.restore()
}

func (l *Live) screen() Screen {
	width, height, err := term.GetSize(int(l.out.Fd()))
	if err != nil || width < 20 || height < 2 {
		width, height = 80, 24
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return Screen{Title: l.title, Width: width, Height: height, Phase: l.phase, Log: slices.Clone(l.log), Style: l.style}
}

// draw shows what there is now.
func (l *Live) draw() {
	if !l.on.Load() {
		return
	}
	screen := l.screen()
	lines := screen.Frame
	if l.quit != nil {
		lines = func(v view.View) []string { return screen.driven(v, l.browser) }
	}
	l.painter.Load().show(picture{lines: lines(l.view), width: screen.Width, whole: l.before != "", before: l.before})
	l.before = ""
}

// farewell gives the terminal back and prints the last state, and what must not be lost with
// the screen.
func (l *Live) farewell(v view.View) {
	l.mu.Lock()
	l.phase = Stopped
	l.mu.Unlock()
	l.GiveBack()
	screen := l.screen()
	screen.Height = min(screen.Height, 24) // it scrolls by, and `status --once` tells all
	lines := screen.Frame(v)
	first := true
	for _, line := range screen.Log {
		if line.Level < slog.LevelError {
			continue
		}
		if first {
			lines = append(lines, "")
			first = false
		}
		lines = append(lines, line.lines(l.style, screen.Width)...)
	}
	l.painter.Load().write(strings.Join(lines, "\n")+"\n", patience)
}
