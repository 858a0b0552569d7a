package terminal

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// painter writes to a terminal in a goroutine of its own. A terminal may take nothing for any
// length of time (Ctrl-S, a connection that hangs), and nobody else must wait for that: of
// the pictures that it can't show, all but the newest are dropped.
type painter struct {
	out      *os.File
	pictures chan picture // the newest
	texts    chan text
	quit     chan struct{}
}

// picture is what the screen shows, line by line.
type picture struct {
	lines []string
	width int
	whole bool // the terminal may show something else than the painter knows
	// before is written before it, whatever becomes of the picture.
	before string
}

// text is written as it is, outside of the screen or to switch it.
type text struct {
	text string
	done chan struct{} // closed once it is written, or can't be
}

func newPainter(out *os.File) *painter {
	p := &painter{out: out, pictures: make(chan picture, 1), texts: make(chan text), quit: make(chan struct{})}
	go p.run()
	return p
}

func (p *painter) run() {
	var shown []string
	var failed bool // there is no terminal any more
	write := func(text string) {
		if !failed && text != "" {
			_, err := p.out.WriteString(text)
			failed = err != nil
		}
	}
	for {
		select {
		case <-p.quit:
			return
		case t := <-p.texts:
			write(t.text)
			close(t.done)
		case next := <-p.pictures:
			if next.whole {
				shown = nil
			}
			write(next.before + next.since(shown))
			shown = next.lines
		}
	}
}

// show replaces the picture. It never blocks; only one goroutine may call it.
func (p *painter) show(next picture) {
	select {
	case was := <-p.pictures:
		next.whole, next.before = next.whole || was.whole, was.before+next.before
	default:
	}
	p.pictures <- next
}

// write writes a text after what is being written, in place of a picture that waits. It
// returns when that is done, or after patience.
func (p *painter) write(s string, patience time.Duration) {
	select {
	case <-p.pictures:
	default:
	}
	timeout := time.After(patience)
	t := text{s, make(chan struct{})}
	select {
	case p.texts <- t:
	case <-timeout:
		return
	}
	select {
	case <-t.done:
	case <-timeout:
	}
}

// close ends the goroutine, once the terminal has taken what is being written.
func (p *painter) close() { close(p.quit) }

// since returns what turns the shown lines into the picture's.
func (p picture) since(shown []string) string {
	var b strings.Builder
	if shown == nil {
		b.WriteString("\x1b[2J")
	}
	for i, line := range p.lines {
		if i >= len(shown) || shown[i] != line {
			fmt.Fprintf(&b, "\x1b[%d;1H%s", i+1, line)
			if visible(line) < p.width { // else it would take the last character away
				b.WriteString("\x1b[K")
			}
		}
	}
	if len(p.lines) < len(shown) {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[J", len(p.lines)+1)
	}
	if b.Len() == 0 {
		return ""
	}
	return beginSync + b.String() + endSync
}
