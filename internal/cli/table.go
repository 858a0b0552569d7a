package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse/internal/control"
)

// table is rows of cells, aligned when printed. Cells may carry colour.
type table struct {
	style Style
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// visible returns a cell's width on a terminal, colour codes left out.
func visible(cell string) int {
	n, in := 0, false
	for _, r := range cell {
		switch {
		case r == '\x1b':
			in = true
		case in:
			in = r != 'm'
		default:
			n++
		}
	}
	return n
}

func (t *table) print(w io.Writer, indent string) {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], visible(cell))
		}
	}
	for _, row := range t.rows {
		line := indent
		for i, cell := range row {
			line += cell
			if i < len(row)-1 {
				line += strings.Repeat(" ", widths[i]-visible(cell)+2)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

func (s Style) state(word string, ok bool) string {
	switch {
	case ok:
		return s.green(word)
	case word == "Pending":
		return s.yellow(word)
	}
	return s.red(word)
}

// shorten cuts a text to n characters.
func shorten(text string, n int) string {
	text, _, _ = strings.Cut(text, "\n")
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:max(n-1, 0)]) + "…"
}

// Wide says whether a table shows messages in full.
type Wide bool

// PrintStatus writes a view as tables: a block per kind, then problems.
func PrintStatus(w io.Writer, v control.View, wide Wide) {
	s := StyleFor(w)
	limit := 60
	if wide {
		limit = 10_000
	}
	blocks := 0
	block := func(title string, t table) {
		if len(t.rows) <= 1 {
			return
		}
		if blocks++; blocks > 1 {
			fmt.Fprintln(w)
		}
		if title != "" {
			fmt.Fprintln(w, s.bold(title))
		}
		t.print(w, "")
	}

	classes := table{style: s}
	classes.add("GATEWAYCLASS", "STATE", "MESSAGE")
	gateways := table{style: s}
	gateways.add("GATEWAY", "CLASS", "LISTENER", "ADDRESS", "HOSTNAME", "ROUTES", "STATE", "MESSAGE")
	routes := table{style: s}
	routes.add("ROUTE", "HOSTNAMES", "PARENTS", "STATE", "MESSAGE")
	for _, it := range v.Items {
		sum := it.Summary
		name := it.Metadata.Name
		if it.Metadata.Namespace != "" {
			name = it.Metadata.Namespace + "/" + name
		}
		switch it.Kind {
		case "GatewayClass":
			classes.add(name, s.state(sum.State, sum.OK), shorten(sum.Message, limit))
		case "Gateway":
			gateways.add(name, sum.Class, "", "", "", "", s.state(sum.State, sum.OK), shorten(sum.Message, limit))
			for _, l := range sum.Listeners {
				gateways.add("", "", l.Name, address(l), l.Hostname, fmt.Sprint(l.Routes), s.state(l.State, l.OK), shorten(l.Message, limit))
			}
		default:
			routes.add(it.Kind+" "+name, list(sum.Hosts, wide), list(sum.Parents, wide), s.state(sum.State, sum.OK), shorten(sum.Message, limit))
		}
	}
	block("", classes)
	block("", gateways)
	block("", routes)
	if wide {
		proxies := table{style: s}
		proxies.add("ENVOY OF", "PHASE", "PID", "RESTARTS", "SINCE", "LAST EXIT")
		for _, p := range v.Proxies {
			proxies.add(p.Gateway, s.state(p.Phase, p.Live), fmt.Sprint(p.PID), fmt.Sprint(p.Restarts), p.Since.Format("15:04:05"), p.LastExit)
		}
		block("", proxies)
	}
	PrintProblems(w, v)
}

// PrintProblems writes what is wrong with the input files.
func PrintProblems(w io.Writer, v control.View) {
	if len(v.Problems) == 0 {
		return
	}
	s := StyleFor(w)
	fmt.Fprintf(w, "\n%s\n", s.bold("PROBLEMS"))
	for _, p := range v.Problems {
		fmt.Fprintf(w, "  %s\n", s.red(p.Error()))
		if p.Stale {
			fmt.Fprintf(w, "      %s\n", s.dim("its last valid version stays in force"))
		}
	}
}

func list(all []string, wide Wide) string {
	if len(all) == 0 {
		return "*"
	}
	if wide || len(all) <= 2 {
		return strings.Join(all, ",")
	}
	return fmt.Sprintf("%s,%s +%d", all[0], all[1], len(all)-2)
}

func address(l control.ListenerRow) string {
	if len(l.Addrs) == 0 {
		return fmt.Sprintf("-:%d", l.Port)
	}
	addr := hostPort(l.Addrs[0], l.Port)
	if len(l.Addrs) > 1 {
		addr += fmt.Sprintf(" +%d", len(l.Addrs)-1)
	}
	return addr
}
