package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// Phase is where a run is in its life, as far as the view does not tell.
type Phase int

// The phases.
const (
	Serving Phase = iota
	Stopping
	Stopped
)

// Screen is what a frame is drawn from besides the view.
type Screen struct {
	Title         string // what is served
	Width, Height int
	Phase         Phase
	Log           []LogLine // oldest first
	Style         Style
	Choice        Choice
}

// Frame returns the lines of the screen, at most Height and none wider than Width.
// It depends on its inputs alone.
func (s Screen) Frame(v view.View) []string {
	problems, gateways, routes, try, log := s.problems(v), s.gateways(v), s.routes(v), s.try(v, v.Items, tries), s.log()
	share(s.Height-1, []claim{
		// What must be seen whatever the number of routes.
		{problems, 4}, {try, first(try)}, {gateways, 4}, {routes, 4},
		// What is wrong, then what to do.
		{problems, max(4, s.Height/3)}, {gateways, gateways.want(gateways.urgent)},
		{try, s.Height / 8}, {routes, routes.want(routes.urgent)},
		{try, try.all()}, {log, 3}, {problems, problems.all()}, {log, 6},
		// And all the rest.
		{gateways, gateways.all()}, {routes, routes.all()}, {log, log.all()},
	})
	out := []string{s.header(v)}
	for _, section := range []*section{problems, gateways, routes, try, log} {
		if section.budget > 0 {
			out = append(out, "")
			out = append(out, section.lines()...)
		}
	}
	out = out[:min(len(out), max(s.Height, 1))]
	for i := range out {
		out[i] = clip(out[i], s.Width)
	}
	return out
}

func (s Screen) header(v view.View) string {
	name, state := s.Style.bold("gatehouse"), s.state(v)
	title := s.Title
	if room := s.Width - visible(name) - visible(state) - 5; visible(title) > room && room > 8 {
		title = clip(title, room)
	}
	return name + "  " + title + "   " + state
}

func (s Screen) state(v view.View) string {
	switch {
	case s.Phase == Stopping:
		return s.Style.yellow("stopping (Ctrl-C again to end now)")
	case s.Phase == Stopped:
		return s.Style.dim("stopped")
	case len(v.Waiting) > 0 && len(v.Items) == 0:
		return s.Style.yellow("waiting for " + strings.Join(v.Waiting, ", ") + " to appear")
	case !v.Ready:
		return strings.TrimRight(s.Style.yellow("starting")+" "+s.Style.dim(v.Why), " ")
	}
	state := s.Style.green("ready")
	if text := Needed(v).String(); text != "" {
		state += ", " + s.Style.yellow(text)
	}
	return state
}

func (s Screen) problems(v view.View) *section {
	key := saidOf
	if s.Choice.Each {
		key = nil
	}
	groups := eachOr(v.Problems, key)
	out := &section{head: "  " + s.Style.bold("PROBLEMS"), more: func(n int) string {
		return "  " + s.Style.red(fmt.Sprintf("… %s", more(count(groups[n:]), "problem")))
	}}
	for _, group := range groups {
		out.blocks = append(out.blocks, equalLines(s.Style, group, s.Width))
	}
	return out
}

// gateways has a block for each Gateway and each ListenerSet with its listeners,
// those with something wrong first.
func (s Screen) gateways(v view.View) *section {
	t := table{style: s.Style, indent: 2, width: s.Width, soft: []int{3}, head: []string{"GATEWAY", "LISTENER", "ADDRESS", "HOSTNAME", "ROUTES", "STATE"}}
	var items []view.Item
	for _, it := range v.Items {
		if it.Kind == kind.Gateway.Name() || it.Kind == kind.ListenerSet.Name() {
			items = append(items, it)
		}
	}
	urgent := wrongFirst(items)
	var sizes []int
	for _, it := range items {
		rows := s.gatewayRows(it)
		sizes = append(sizes, len(rows))
		t.rows = append(t.rows, rows...)
	}
	head, rows := t.render()
	out := &section{head: head, urgent: urgent, more: s.moreOf(len(items), urgent, "Gateway", nil)}
	for _, n := range sizes {
		out.blocks = append(out.blocks, slices.Concat(rows[:n]...))
		rows = rows[n:]
	}
	if len(items) == 0 && v.Ready && len(v.Waiting) == 0 && s.Phase == Serving && !s.Choice.narrow() {
		out.head = "  " + s.Style.yellow("no Gateway of class gatehouse yet")
		for _, l := range wrap("Save one below "+s.Title+" with spec.gatewayClassName: gatehouse, or with the name of a GatewayClass whose controllerName is gatehouse.dev/controller.", s.Width-6, 0) {
			out.blocks = append(out.blocks, []string{"      " + s.Style.dim(l)})
		}
	}
	return out
}

// gatewayRows has a row for each listener. A Gateway that is refused as a whole
// has one: its listeners would only repeat why.
func (s Screen) gatewayRows(it view.Item) []row {
	sum, name := it.Summary, objectName(it.Metadata)
	if it.Kind != kind.Gateway.Name() {
		name = it.Kind + " " + name
	}
	state := func(word string, ok bool) string { return s.word(word, ok) }
	same := !slices.ContainsFunc(sum.Listeners, func(l view.ListenerRow) bool { return l.OK || l.State != sum.State || l.Message != "" })
	if len(sum.Listeners) == 0 || !sum.OK && same {
		return []row{{[]string{name, "", "", "", "", state(sum.State, sum.OK)}, it.Told()}}
	}
	wrong := slices.ContainsFunc(sum.Listeners, func(l view.ListenerRow) bool { return !l.OK })
	var rows []row
	if sum.RefusedEdit != "" { // about the Gateway, whatever its listeners say
		rows = append(rows, row{[]string{name, "", "", "", "", state(sum.State, sum.OK)}, it.Told()})
	}
	for i, l := range sum.Listeners {
		r := row{[]string{"", l.Name, address(l), l.Hostname, fmt.Sprint(l.Routes), state(l.State, l.OK)}, cmp.Or(l.Message, l.Notes)}
		if i == 0 && len(rows) == 0 {
			r.cells[0] = name
			if !wrong && !sum.OK { // the Gateway's own trouble
				r.cells[5], r.remark = state(sum.State, false), it.Told()
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func (s Screen) routes(v view.View) *section {
	t := table{style: s.Style, indent: 2, width: s.Width, soft: []int{1, 2}, head: []string{"ROUTE", "HOSTNAMES", "PARENTS", "READY", "POLICIES", "STATE"}}
	var items []view.Item
	for _, it := range v.Items {
		if it.Kind != kind.Gateway.Name() && it.Kind != kind.ListenerSet.Name() && it.Kind != kind.GatewayClass.Name() || it.Kind == kind.GatewayClass.Name() && !it.Summary.OK {
			items = append(items, it)
		}
	}
	urgent := wrongFirst(items)
	groups := s.alike(items)
	wrong := 0 // of the groups, those before the first that is in order
	for _, group := range groups {
		it := group[0]
		if _, _, bad := it.Summary.Trouble(); bad {
			wrong++
		}
		sum := it.Summary
		r := row{[]string{it.Kind + " " + objectName(it.Metadata), list(sum.Hosts, false), list(parents(sum), false), readyEndpoints(s.Style, sum), policies(sum), s.word(sum.State, sum.OK)}, it.Told()}
		if it.Kind == kind.GatewayClass.Name() {
			r.cells[1], r.cells[2] = "", ""
		}
		if n := len(group); n > 1 {
			r.cells[0] += fmt.Sprintf(" +%d", n-1)
			r.remark += " (" + otherNames(group) + ")"
		}
		t.rows = append(t.rows, r)
	}
	t.withoutEmpty(4, 3)
	head, rows := t.render()
	return &section{head: head, blocks: rows, urgent: wrong, more: s.moreOf(len(items), urgent, "route", func(n int) int { return count(groups[:n]) })}
}

// word paints a state. Once stopped nothing is in force, however good it was.
func (s Screen) word(state string, ok bool) string {
	if s.Phase == Stopped && (ok || state == statePending) {
		state = stateStopped
	}
	return s.Style.state(state, ok)
}

// wrongFirst sorts items, those with something wrong first, and returns how many.
func wrongFirst(items []view.Item) int {
	n := 0
	rank := map[bool]int{true: 0, false: 1}
	bad := func(it view.Item) bool { _, _, bad := it.Summary.Trouble(); return bad }
	for _, it := range items {
		if bad(it) {
			n++
		}
	}
	slices.SortStableFunc(items, func(a, b view.Item) int { return rank[bad(a)] - rank[bad(b)] })
	return n
}

// moreOf returns the line that stands for the blocks from the n-th on. of says how many of
// the items are in the first n; nil if each has a block.
func (s Screen) moreOf(items, urgent int, noun string, of func(n int) int) func(n int) string {
	return func(n int) string {
		if of != nil {
			n = of(n)
		}
		wrong := max(urgent-n, 0)
		fine := items - n - wrong
		word := "Accepted"
		if noun == "Gateway" {
			word = "in order"
		}
		switch {
		case s.Phase == Stopped && wrong == 0:
			return "  " + s.Style.dim("… "+more(fine, noun))
		case wrong == 0:
			return "  " + s.Style.dim("… "+more(fine, noun)+" "+word)
		case fine == 0:
			return "  " + s.Style.red("… "+more(wrong, noun)+" with a problem")
		}
		return "  " + s.Style.red("… "+more(wrong, noun)+" with a problem") + s.Style.dim(fmt.Sprintf(", %d %s", fine, word))
	}
}

// more returns "1 more route", "7 more routes".
func more(n int, noun string) string {
	return strings.Replace(plural(n, noun), " ", " more ", 1)
}

// first returns the lines that a section needs for its first block alone.
func first(s *section) int {
	if len(s.blocks) == 0 {
		return 0
	}
	return 1 + len(s.blocks[0])
}

// tries is how many commands to try are shown.
const tries = 5

// try has up to n commands for the routes among items.
func (s Screen) try(v view.View, items []view.Item, n int) *section {
	out := &section{head: "  " + s.Style.bold("TRY")}
	if s.Phase != Serving {
		return out
	}
	for _, command := range tryAmong(v, items, n) {
		out.blocks = append(out.blocks, commandLines(command, s.Width))
	}
	return out
}

func (s Screen) log() *section {
	out := &section{head: "  " + s.Style.bold("LOG"), last: true}
	if s.Phase == Stopped {
		return out
	}
	for _, l := range s.Log {
		if s.Choice.logs(l) {
			out.blocks = append(out.blocks, l.lines(s.Style, s.Width))
		}
	}
	return out
}
