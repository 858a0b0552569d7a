package cli

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/gatehouse-dev/gatehouse/internal/control"
)

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// Live redraws a screen with the state of everything whenever it changes. Log
// lines that are written to it appear below the tables.
type Live struct {
	out   *os.File
	title string

	mu    sync.Mutex
	lines []string
	wake  chan struct{}
}

// NewLive returns a live screen on a terminal.
func NewLive(out *os.File, title string) *Live {
	return &Live{out: out, title: title, wake: make(chan struct{}, 1)}
}

// keptLines is how many log lines the screen remembers.
const keptLines = 50

// Write takes log lines.
func (l *Live) Write(p []byte) (int, error) {
	l.mu.Lock()
	for line := range strings.Lines(string(p)) {
		l.lines = append(l.lines, strings.TrimRight(line, "\r\n"))
	}
	if n := len(l.lines) - keptLines; n > 0 {
		l.lines = append([]string(nil), l.lines[n:]...)
	}
	l.mu.Unlock()
	l.Changed()
	return len(p), nil
}

// Changed asks for a redraw. It never blocks.
func (l *Live) Changed() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// frame is the shortest time between two redraws.
const frame = 100 * time.Millisecond

// Run redraws until done is closed, then leaves the cursor below the last state.
func (l *Live) Run(done <-chan struct{}, view func() control.View) {
	fmt.Fprint(l.out, "\x1b[?25l")
	defer fmt.Fprint(l.out, "\x1b[?25h")
	tick := time.NewTicker(2 * time.Second) // also picks up a resized window
	defer tick.Stop()
	for {
		l.draw(view())
		select {
		case <-done:
			l.draw(view())
			return
		case <-l.wake:
		case <-tick.C:
		}
		select {
		case <-done:
		case <-time.After(frame):
		}
	}
}

func (l *Live) draw(v control.View) {
	width, height, err := term.GetSize(int(l.out.Fd()))
	if err != nil || width < 20 {
		width, height = 100, 40
	}
	var tables bytes.Buffer
	l.tables(&tables, v)
	body := strings.Split(strings.TrimRight(tables.String(), "\n"), "\n")

	l.mu.Lock()
	logs := append([]string(nil), l.lines...)
	l.mu.Unlock()
	const leastLogs = 6
	if room := height - 2 - min(len(logs), leastLogs) - 1; len(body) > room && room > 1 {
		hidden := len(body) - room + 1
		body = append(body[:room-1:room-1], fmt.Sprintf("… %d more lines; `gatehouse status` shows all", hidden))
	}
	if room := height - 2 - len(body) - 1; len(logs) > room {
		logs = logs[len(logs)-max(room, 0):]
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	line := func(s string) {
		b.WriteString(clip(s, width))
		b.WriteString("\x1b[0m\x1b[K\r\n")
	}
	for _, s := range body {
		line(s)
	}
	if len(logs) > 0 {
		line("")
		for _, s := range logs {
			line("\x1b[2m" + s)
		}
	}
	b.WriteString("\x1b[J")
	fmt.Fprint(l.out, b.String())
}

// clip cuts a line to the terminal's width, colour codes not counted.
func clip(s string, width int) string {
	if visible(s) <= width {
		return s
	}
	n, in := 0, false
	for i, r := range s {
		switch {
		case r == '\x1b':
			in = true
		case in:
			in = r != 'm'
		default:
			if n++; n > width-1 {
				return s[:i] + "…"
			}
		}
	}
	return s
}

func (l *Live) tables(b *bytes.Buffer, v control.View) {
	s := Style{color: os.Getenv("NO_COLOR") == ""}
	state := s.green("ready")
	if !v.Ready {
		state = s.yellow("starting") + " " + s.dim(v.Why)
	}
	fmt.Fprintf(b, "%s  %s   %s\n\n", s.bold("gatehouse"), l.title, state)

	gateways := table{style: s}
	gateways.add(s.dim("GATEWAY"), s.dim("LISTENER"), s.dim("ADDRESS"), s.dim("HOSTNAME"), s.dim("ROUTES"), s.dim("STATE"))
	good, wrong := table{style: s}, table{style: s}
	header := []string{s.dim("ROUTE"), s.dim("HOSTNAMES"), s.dim("PARENTS"), s.dim("STATE")}
	wrong.add(header...)
	for _, it := range v.Items {
		sum := it.Summary
		name := it.Metadata.Namespace + "/" + it.Metadata.Name
		switch {
		case it.Kind == "GatewayClass":
		case it.Kind == "Gateway":
			first := name
			for _, row := range sum.Listeners {
				gateways.add(first, row.Name, address(row), row.Hostname, fmt.Sprint(row.Routes), s.state(row.State, row.OK)+" "+s.dim(shorten(row.Message, 100)))
				first = ""
			}
			if !sum.OK && first == "" && sum.State != "Pending" || len(sum.Listeners) == 0 {
				gateways.add(name, "", "", "", "", s.state(sum.State, sum.OK)+" "+s.dim(shorten(sum.Message, 100)))
			}
		case sum.OK:
			good.add(it.Kind+" "+name, list(sum.Hosts, false), list(sum.Parents, false), s.state(sum.State, true))
		default:
			wrong.add(it.Kind+" "+name, list(sum.Hosts, false), list(sum.Parents, false), s.state(sum.State, false)+" "+s.dim(shorten(sum.Message, 100)))
		}
	}
	gateways.print(b, "  ")
	if len(good.rows)+len(wrong.rows) > 1 {
		fmt.Fprintln(b)
		wrong.rows = append(wrong.rows, good.rows...) // what is wrong comes first
		wrong.print(b, "  ")
	}
	if len(v.Problems) > 0 {
		fmt.Fprintf(b, "\n  %s\n", s.bold("PROBLEMS"))
		for _, p := range v.Problems {
			text := "  " + s.red(p.Error())
			if p.Stale {
				text += s.dim(" (last valid version stays in force)")
			}
			fmt.Fprintln(b, text)
		}
	}
	if lines := Try(v, 5); len(lines) > 0 {
		fmt.Fprintf(b, "\n  %s\n", s.bold("TRY"))
		for _, t := range lines {
			fmt.Fprintln(b, "  "+t)
		}
	}
}
