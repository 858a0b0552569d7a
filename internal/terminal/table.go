package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// table is rows of cells, aligned when rendered.
type table struct {
	style  Style
	indent int
	width  int // of the terminal; 0 is without end
	head   []string
	soft   []int // columns that yield first where the terminal is narrow
	rows   []row
	least  []int // the columns' widths at least; nil for none
}

// row is the cells of an object or of a part of it. The last cell is its state.
// The remark, plain text, stands behind it if there is room, else below.
type row struct {
	cells  []string // may carry a colour, as a whole
	remark string
}

const (
	// gap is the space between columns.
	gap = 2
	// leastColumn is what a column keeps of its width.
	leastColumn = 8
	// stateColumn is what the last column needs: the good states fit. A reason
	// that is longer stands with its message below the row, if need be.
	stateColumn = 12
)

// withoutEmpty leaves out those of some columns, given from the last, in which no row has anything.
func (t *table) withoutEmpty(columns ...int) {
	for _, i := range columns {
		if slices.ContainsFunc(t.rows, func(r row) bool { return r.cells[i] != "" }) {
			continue
		}
		t.head = slices.Delete(t.head, i, i+1)
		for j := range t.rows {
			t.rows[j].cells = slices.Delete(t.rows[j].cells, i, i+1)
		}
	}
}

// widths returns the columns' widths, of which the last one is without end.
func (t *table) widths() []int {
	widths := make([]int, len(t.head))
	copy(widths, t.least)
	for i, cell := range t.head {
		widths[i] = max(widths[i], visible(cell))
	}
	for _, r := range t.rows {
		for i, cell := range r.cells {
			widths[i] = max(widths[i], visible(cell))
		}
	}
	if t.width == 0 {
		return widths
	}
	last := len(widths) - 1
	hard := make([]int, last)
	for i := range hard {
		hard[i] = i
	}
	over := t.indent + min(widths[last], stateColumn) - t.width
	for _, w := range widths[:last] {
		over += w + gap
	}
	over = shrink(widths, t.soft, over)
	shrink(widths, hard, over)
	return widths
}

// shrink takes characters off the widest of some columns, and returns how many are
// still too many.
func shrink(widths, columns []int, over int) int {
	for ; over > 0; over-- {
		widest := -1
		for _, i := range columns {
			if widths[i] > leastColumn && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return over
}

// render returns the header's line, and the lines of each row.
func (t *table) render() (head string, rows [][]string) {
	for _, r := range t.rows {
		for i, cell := range r.cells {
			r.cells[i] = t.style.cleaned(cell)
		}
	}
	widths := t.widths()
	dimmed := make([]string, len(t.head))
	for i, h := range t.head {
		dimmed[i] = t.style.dim(h)
	}
	head = t.line(widths, dimmed)
	for _, r := range t.rows {
		rows = append(rows, t.rowLines(widths, r))
	}
	return head, rows
}

func (t *table) line(widths []int, cells []string) string {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", t.indent))
	for i, cell := range cells {
		if i == len(cells)-1 {
			b.WriteString(cell)
		} else {
			cell = clip(cell, widths[i])
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", widths[i]-visible(cell)+gap))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func (t *table) rowLines(widths []int, r row) []string {
	last := len(widths) - 1
	state, remark := r.cells[last], Clean(r.remark)
	line := t.line(widths, r.cells)
	if t.width > 0 && visible(line) > t.width {
		line = t.line(widths, append(slices.Clone(r.cells[:last]), ""))
		return append([]string{line}, t.below(state, remark)...)
	}
	if remark == "" {
		return []string{line}
	}
	// Aligned with one another where they follow the state.
	pad := strings.Repeat(" ", max(widths[last]-visible(state), 0)+gap)
	if t.width == 0 || visible(line)+len(pad)+visible(remark) <= t.width {
		return []string{line + pad + t.style.dim(remark)}
	}
	return append([]string{line}, t.below("", remark)...)
}

// below returns the lines that go on with a row.
func (t *table) below(state, remark string) []string {
	indent := strings.Repeat(" ", t.indent+4)
	var lines []string
	room := visible(state)
	text := remark
	if room > 0 && remark != "" {
		text = strings.Repeat("x", room) + ": " + remark // stands for the state, which has colour
	}
	for i, l := range wrap(text, t.width-len(indent), 0) {
		if i == 0 && room > 0 {
			l = state + t.style.dim(strings.TrimPrefix(l, strings.Repeat("x", room)))
		} else {
			l = t.style.dim(l)
		}
		lines = append(lines, indent+l)
	}
	return lines
}

// Wide says whether a table shows lists in full, and processes.
type Wide bool

func list(all []string, wide Wide) string {
	if len(all) == 0 {
		return "*"
	}
	if wide || len(all) <= 2 {
		return strings.Join(all, ",")
	}
	return fmt.Sprintf("%s,%s +%d", all[0], all[1], len(all)-2)
}

func address(l view.ListenerRow) string {
	if len(l.Addrs) == 0 {
		return fmt.Sprintf("-:%d", l.Port)
	}
	addr := hostPort(l.Addrs[0], l.Port)
	if len(l.Addrs) > 1 {
		addr += fmt.Sprintf(" +%d", len(l.Addrs)-1)
	}
	return addr
}

func objectName(m view.ItemMeta) string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}
