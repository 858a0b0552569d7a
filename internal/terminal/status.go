package terminal

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

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
	print(remotes(s, v, time.Now()))
}

// remotes are config servers and member clusters, and how old what is in force of them is.
func remotes(s Style, v view.View, now time.Time) table {
	t := table{head: []string{"FROM", "OBJECTS", "AGE", "STATE"}}
	for _, r := range v.Remotes {
		state, age := "Current", ""
		switch {
		case r.AsOf.IsZero():
			state = "Unknown"
		case !r.Current:
			state, age = "Kept", duration.HumanDuration(r.Age(now))
		}
		t.rows = append(t.rows, row{cells: []string{r.Address, fmt.Sprint(r.Objects), age, s.state(state, r.Current)}})
	}
	return t
}

// columns puts what only a wide table has before the state.
func columns(wide Wide, state string, cells []string, more ...string) []string {
	if wide {
		cells = append(cells, more...)
	}
	return append(cells, state)
}

func statusTables(s Style, v view.View, wide Wide) (classes, gateways, sets, routes table) {
	classes = table{head: columns(wide, "STATE", []string{"GATEWAYCLASS"}, "PARAMETERS", "AGE")}
	listeners := []string{"LISTENER", "ADDRESS", "HOSTNAME", "ROUTES"}
	gateways = table{soft: []int{1, 4}, head: columns(wide, "STATE", slices.Concat([]string{"GATEWAY", "CLASS"}, listeners), "PROTOCOL", "PARAMETERS", "LISTENERSETS", "AGE")}
	sets = table{soft: []int{1, 4}, head: columns(wide, "STATE", slices.Concat([]string{"LISTENERSET", "GATEWAY"}, listeners), "PROTOCOL", "AGE")}
	routes = table{soft: []int{1, 2}, head: columns(wide, "STATE", []string{"ROUTE", "HOSTNAMES", "PARENTS", "READY", "POLICIES"}, "AGE")}
	for _, it := range v.Items {
		if isPolicy(it) {
			continue
		}
		sum, name, age := it.Summary, objectName(it.Metadata), age(it.Metadata)
		state := s.state(sum.State, sum.OK)
		switch it.Kind {
		case kind.GatewayClass.Name():
			classes.rows = append(classes.rows, row{columns(wide, state, []string{name}, sum.Parameters, age), it.Told()})
		case kind.Gateway.Name():
			cells := columns(wide, state, []string{name, sum.Class, "", "", "", ""}, "", sum.Parameters, attachedSets(v, it), age)
			gateways.rows = append(gateways.rows, row{cells, it.Told()})
			gateways.rows = append(gateways.rows, listenerRows(s, sum.Listeners, wide, "", "", "")...)
		case kind.ListenerSet.Name():
			cells := columns(wide, state, []string{name, list(sum.Parents, wide), "", "", "", ""}, "", age)
			sets.rows = append(sets.rows, row{cells, it.Told()})
			sets.rows = append(sets.rows, listenerRows(s, sum.Listeners, wide, "")...)
		default:
			cells := columns(wide, state, []string{it.Kind + " " + name, list(sum.Hosts, wide), list(parents(sum), wide), readyEndpoints(s, sum), policies(sum)}, age)
			routes.rows = append(routes.rows, row{cells, it.Told()})
		}
	}
	routes.withoutEmpty(4, 3)
	return classes, gateways, sets, routes
}

// readyEndpoints says how many of the endpoints of a route's backends are ready; empty where they have none of their own.
func readyEndpoints(s Style, sum view.Summary) string {
	e := sum.Endpoints
	if e == nil {
		return ""
	}
	text := fmt.Sprintf("%d/%d", e.Ready, e.All)
	switch {
	case e.Ready == 0:
		return s.red(text)
	case e.Ready < e.All:
		return s.yellow(text)
	}
	return text
}

// policies names the kinds of policies that are in force for a route.
func policies(sum view.Summary) string {
	var out []string
	for _, kind := range sum.Policies {
		out = append(out, strings.TrimSuffix(kind, "Policy"))
	}
	return strings.Join(out, ",")
}

// parents are what a route is attached to; of a ListenerSet, with its Gateway.
func parents(sum view.Summary) []string {
	out := slices.Clone(sum.Parents)
	for i, parent := range out {
		if gateway := sum.SetGateways[parent]; gateway != "" {
			out[i] += " of " + gateway
		}
	}
	return out
}

// age says how old an object is; empty where nobody knows.
func age(m view.ItemMeta) string {
	if m.CreationTimestamp.IsZero() {
		return ""
	}
	return duration.HumanDuration(time.Since(m.CreationTimestamp.Time))
}

// attachedSets says how many of the ListenerSets that name a Gateway it has accepted.
func attachedSets(v view.View, gateway view.Item) string {
	all := 0
	for _, it := range v.Items {
		if it.Kind == kind.ListenerSet.Name() && slices.Contains(it.Summary.Parents, objectName(gateway.Metadata)) {
			all++
		}
	}
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", gateway.Summary.AttachedSets, all)
}

// isPolicy reports whether an item says how others behave, and takes no requests itself.
func isPolicy(it view.Item) bool {
	for d := range kind.All.Rows() {
		if d.Kind.Name() == it.Kind {
			return d.Family == kind.Policy
		}
	}
	return false
}

// policyTable shows policies, each with what it targets.
func policyTable(s Style, v view.View, wide Wide) table {
	t := table{soft: []int{1, 2}, head: columns(wide, "STATE", []string{"POLICY", "HOSTNAME", "TARGETS"}, "AGE")}
	for _, it := range v.Items {
		if sum := it.Summary; isPolicy(it) {
			cells := []string{it.Kind + " " + objectName(it.Metadata), list(sum.Hosts, wide), list(sum.Parents, wide)}
			t.rows = append(t.rows, row{columns(wide, s.state(sum.State, sum.OK), cells, age(it.Metadata)), it.Told()})
		}
	}
	return t
}

// listenerRows are the rows of listeners below the object that defines them; behind are its
// cells of a wide table behind the listener's own.
func listenerRows(s Style, listeners []view.ListenerRow, wide Wide, behind ...string) []row {
	rows := make([]row, len(listeners))
	for i, l := range listeners {
		cells := []string{"", "", l.Name, address(l), l.Hostname, fmt.Sprint(l.Routes)}
		cells = columns(wide, s.state(l.State, l.OK), cells, slices.Concat([]string{l.Protocol}, behind)...)
		rows[i] = row{cells, cmp.Or(l.Message, l.Notes)}
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
		if len(p.LastValid) > 0 {
			stale = "the last valid version stays in force of " + view.First(len(p.LastValid), namedFirst, func(i int) string { return Clean(p.LastValid[i].String()) })
		}
		lines = append(lines, "      "+s.dim(stale))
	}
	return lines
}

func problemText(s Style, text string, width int) []string {
	const indent = "  "
	text = Clean(text)
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
