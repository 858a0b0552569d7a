package terminal

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/gatehouse-dev/gatehouse/internal/figures"
)

// PrintTraffic prints routes as rows of a table.
func PrintTraffic(w io.Writer, list []figures.Traffic, wide Wide) {
	width := terminalWidth(w)
	if wide {
		width = 0
	}
	for _, line := range trafficLines(StyleFor(w), width, list, wide) {
		fmt.Fprintln(w, line)
	}
}

func trafficLines(s Style, width int, list []figures.Traffic, wide Wide) []string {
	t := table{style: s, width: width, soft: []int{1, 0}}
	t.head = []string{"GATEWAY", "ROUTE", "REQ/S", "4XX", "5XX", "P50", "P99"}
	if wide {
		t.head = append(t.head, "2XX", "3XX", "NONE", "RETRIES", "IN/S", "OUT/S", "ERRORS")
	}
	for i := range list {
		r := &list[i]
		share := func(class string) string { return percent(r.Classes[class], r.Requests) }
		cells := []string{r.Gateway, routeOf(r.Of), perSecond(r.PerSecond), noted(s.yellow, share("4xx")), noted(s.red, share("5xx")), latency(r, r.P50), latency(r, r.P99)}
		if wide {
			cells = append(cells, share("2xx"), share("3xx"), share("none"), percent(r.Retries, r.Requests), byteRate(r.Received), byteRate(r.Sent), dash(errorTypes(r)))
		}
		t.rows = append(t.rows, row{cells: cells})
	}
	head, rows := t.render()
	return slices.Concat(append([][]string{{head}}, rows...)...)
}

func routeOf(of figures.Of) string {
	switch of.Kind {
	case "":
		return "(no route)"
	case figures.Other:
		return strings.TrimSuffix("(others of "+of.Namespace, " of ") + ")"
	default:
		return of.Kind + " " + of.Namespace + "/" + of.Name
	}
}

func perSecond(n float64) string {
	if n < 10 {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

// percent shows nothing at all otherwise than a small share.
func percent(n, of uint64) string {
	switch share := 100 * float64(n) / float64(of); {
	case n == 0:
		return "-"
	case share < 0.1:
		return "<0.1%"
	case share < 10:
		return strconv.FormatFloat(share, 'f', 1, 64) + "%"
	default:
		return strconv.FormatFloat(share, 'f', 0, 64) + "%"
	}
}

// noted paints a share, if there is one.
func noted(paint func(string) string, share string) string {
	if share == "-" {
		return share
	}
	return paint(share)
}

func latency(t *figures.Traffic, seconds float64) string {
	text := (time.Duration(seconds*1e6) * time.Microsecond).Round(time.Millisecond / 10).String()
	if seconds >= 0.1 {
		text = (time.Duration(seconds*1e6) * time.Microsecond).Round(time.Millisecond).String()
	}
	if t.Longest(seconds) {
		return ">" + text
	}
	return text
}

// byteRate shows the bytes of a second.
func byteRate(n float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	i := 0
	for ; n >= 1000 && i < len(units)-1; i++ {
		n /= 1000
	}
	if n == 0 {
		return "-"
	}
	return perSecond(n) + units[i]
}

// errorTypes has those of the most requests first.
func errorTypes(t *figures.Traffic) string {
	names := slices.SortedFunc(maps.Keys(t.Types), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.Types[b], t.Types[a]), strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = name + " " + percent(t.Types[name], t.Requests)
	}
	return strings.Join(names, ", ")
}

// A TrafficScreen shows the routes of the moment in place of those before, as many as a terminal has
// room for. It leaves the terminal as it is: what was above goes up, and nothing needs to be put back.
type TrafficScreen struct {
	out  *os.File
	wide Wide
}

// NewTrafficScreen returns a screen on a terminal.
func NewTrafficScreen(out *os.File, wide Wide) *TrafficScreen { return &TrafficScreen{out, wide} }

// Show replaces what is shown. A job in the background leaves the terminal alone.
func (s *TrafficScreen) Show(title string, list []figures.Traffic) error {
	if !foreground(s.out) {
		return nil
	}
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width < 20 || height < 4 {
		width, height = 80, 24
	}
	lines := append([]string{StyleFor(s.out).dim(title)}, trafficLines(StyleFor(s.out), width, list, s.wide)...)
	if room := height - 1; len(lines) > room {
		lines = append(lines[:room-1], fmt.Sprintf("… %d lines more", len(lines)-room+1))
	}
	var b strings.Builder
	b.WriteString(beginSync + "\x1b[H")
	for _, line := range lines {
		b.WriteString(clip(line, width) + "\x1b[K\n")
	}
	b.WriteString("\x1b[J" + endSync)
	_, err = s.out.WriteString(b.String())
	return err
}
