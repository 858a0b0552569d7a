package terminal

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// PrintStatus writes problems with inputs, and then a view as tables, one per kind: what is
// wrong with an object may follow from a problem. Messages are
// never cut: on a terminal they go on below their row, elsewhere a row is a line.
func PrintStatus(w io.Writer, v view.View, wide Wide) {
	s := StyleFor(w)
	width := terminalWidth(w)
	if wide {
		width = 0
	}
	blocks := 0
	print := func(t table) {
		if len(t.rows) == 0 {
			return
		}
		if blocks++; blocks > 1 {
			fmt.Fprintln(w)
		}
		t.style, t.width = s, width
		head, rows := t.render()
		fmt.Fprintln(w, head)
		for _, lines := range rows {
			for _, line := range lines {
				fmt.Fprintln(w, line)
			}
		}
	}
	if len(v.Problems) > 0 {
		blocks++
		fmt.Fprintln(w, s.bold("PROBLEMS"))
		for _, p := range v.Problems {
			for _, line := range problemLines(s, p, width) {
				fmt.Fprintln(w, line)
			}
		}
	}
	classes, gateways, sets, routes := statusTables(s, v, wide)
	print(classes)
	print(gateways)
	print(sets)
	print(routes)
	print(policyTable(s, v, wide))
	print(processes(s, v, wide))
}

func statusTables(s Style, v view.View, wide Wide) (classes, gateways, sets, routes table) {
	classes = table{head: []string{"GATEWAYCLASS", "STATE"}}
	gateways = table{soft: []int{1, 4}, head: []string{"GATEWAY", "CLASS", "LISTENER", "ADDRESS", "HOSTNAME", "ROUTES", "STATE"}}
	sets = table{soft: []int{1, 4}, head: []string{"LISTENERSET", "GATEWAY", "LISTENER", "ADDRESS", "HOSTNAME", "ROUTES", "STATE"}}
	routes = table{soft: []int{1, 2}, head: []string{"ROUTE", "HOSTNAMES", "PARENTS", "STATE"}}
	for _, it := range v.Items {
		sum, name := it.Summary, objectName(it.Metadata)
		state := s.state(sum.State, sum.OK)
		switch it.Kind {
		case kind.GatewayClass.Name():
			classes.rows = append(classes.rows, row{[]string{name, state}, sum.Message})
		case kind.Gateway.Name():
			gateways.rows = append(gateways.rows, row{[]string{name, sum.Class, "", "", "", "", state}, sum.Message})
			gateways.rows = append(gateways.rows, listenerRows(s, sum.Listeners)...)
		case kind.ListenerSet.Name():
			sets.rows = append(sets.rows, row{[]string{name, list(sum.Parents, wide), "", "", "", "", state}, sum.Message})
			sets.rows = append(sets.rows, listenerRows(s, sum.Listeners)...)
		case kind.BackendTLSPolicy.Name(), kind.BackendTrafficPolicy.Name():
		default:
			routes.rows = append(routes.rows, row{
				[]string{it.Kind + " " + name, list(sum.Hosts, wide), list(sum.Parents, wide), state}, sum.Message,
			})
		}
	}
	return classes, gateways, sets, routes
}

// isPolicy reports whether an item says how others behave, and takes no requests itself.
func isPolicy(it view.Item) bool {
	return it.Kind == kind.BackendTLSPolicy.Name() || it.Kind == kind.BackendTrafficPolicy.Name()
}

// policyTable shows policies, each with what it targets.
func policyTable(s Style, v view.View, wide Wide) table {
	t := table{soft: []int{1, 2}, head: []string{"POLICY", "HOSTNAME", "TARGETS", "STATE"}}
	for _, it := range v.Items {
		if sum := it.Summary; isPolicy(it) {
			t.rows = append(t.rows, row{
				[]string{it.Kind + " " + objectName(it.Metadata), list(sum.Hosts, wide), list(sum.Parents, wide), s.state(sum.State, sum.OK)}, sum.Message,
			})
		}
	}
	return t
}

// listenerRows are the rows of listeners below the object that defines them.
func listenerRows(s Style, listeners []view.ListenerRow) []row {
	rows := make([]row, len(listeners))
	for i, l := range listeners {
		rows[i] = row{
			[]string{"", "", l.Name, address(l), l.Hostname, fmt.Sprint(l.Routes), s.state(l.State, l.OK)}, cmp.Or(l.Message, l.Notes),
		}
	}
	return rows
}

// processes are the Envoys; if not wide, only those that don't do what they are there for.
func processes(s Style, v view.View, wide Wide) table {
	t := table{head: []string{"ENVOY OF", "PHASE", "PID", "RESTARTS", "SINCE", "LAST EXIT"}}
	for _, p := range v.Proxies {
		if troubled := p.Phase == string(proxy.PhaseStalled) || p.Phase == string(proxy.PhaseBackoff); !troubled && !bool(wide) {
			continue
		}
		t.rows = append(t.rows, row{cells: []string{
			p.Gateway, s.state(p.Phase, p.Live), fmt.Sprint(p.PID), fmt.Sprint(p.Restarts), p.Since.Format("15:04:05"), p.LastExit,
		}})
	}
	return t
}

// problemLines tells a problem with an input: where, what, and what is in force.
func problemLines(s Style, p source.Problem, width int) []string {
	lines := problemText(s, p.Error(), width)
	if p.Stale {
		stale := "its last valid version stays in force"
		if len(p.Held) > 0 {
			stale = "the last valid version stays in force of " + named(len(p.Held), func(i int) string { return clean(p.Held[i].String()) })
		}
		lines = append(lines, "      "+s.dim(stale))
	}
	return lines
}

func problemText(s Style, text string, width int) []string {
	const indent = "  "
	text = clean(text)
	if width == 0 || len(indent)+visible(text) <= width {
		return []string{indent + s.red(text)}
	}
	var lines []string
	for i, l := range wrap(text, width-len(indent), 4) {
		if i > 0 {
			l = "    " + s.red(strings.TrimLeft(l, " "))
		} else {
			l = s.red(l)
		}
		lines = append(lines, indent+l)
	}
	return lines
}
