package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Marks in the page of the documentation, between which the table of figures is.
const (
	tableBegins = "<!-- figures -->\n"
	tableEnds   = "<!-- /figures -->"
)

// publish writes a plot for each shape with samples, and the page's table.
func (r *report) publish(o options) error {
	byShape := map[string][]*measurement{}
	for _, m := range r.Measurements {
		if m.plotted() {
			byShape[m.Shape] = append(byShape[m.Shape], m)
		}
	}
	for shape, all := range byShape {
		//nolint:gosec // it is checked in for all to read
		if err := os.WriteFile(filepath.Join(o.plots, plotFile(shape)), plot(shape, all), 0o644); err != nil {
			return err
		}
	}
	if o.page == "" {
		return nil
	}
	page, err := os.ReadFile(o.page)
	if err != nil {
		return err
	}
	before, rest, ok1 := strings.Cut(string(page), tableBegins)
	_, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has no place for the table: a line %s and a line %s", o.page, strings.TrimSpace(tableBegins), tableEnds)
	}
	//nolint:gosec // it is checked in for all to read
	return os.WriteFile(o.page, []byte(before+tableBegins+r.table()+tableEnds+after), 0o644)
}

// table has a row for each figure.
func (r *report) table() string {
	var out strings.Builder
	commits := map[string]bool{}
	fmt.Fprint(&out, "\n| shape | size | Gateway | mode | figure | |\n|---|---:|---|---|---|---:|\n")
	for _, m := range r.Measurements {
		for _, f := range m.Figures {
			fmt.Fprintf(&out, "| `%s` | %d | %s | %s | `%s` | %v |\n", m.Shape, m.Size, m.Gateway, m.Mode, f.Name, f.Value)
		}
		commits[fmt.Sprintf("commit %s on %s", m.Commit, m.Machine)] = true
	}
	for i, from := range slices.Sorted(maps.Keys(commits)) {
		lead := cmp.Or(map[bool]string{true: "\nMeasured at "}[i == 0], ", ")
		fmt.Fprint(&out, lead, from)
	}
	if len(commits) > 0 {
		fmt.Fprint(&out, ".\n")
	}
	for _, shape := range order {
		if slices.ContainsFunc(r.Measurements, func(m *measurement) bool { return m.Shape == shape && m.plotted() }) {
			fmt.Fprintf(&out, "\n![%s](../../bench/results/%s)\n", shape, plotFile(shape))
		}
	}
	return out.String() + "\n"
}

func (m *measurement) plotted() bool { return len(m.Samples) > 1 }

func plotFile(shape string) string { return "cluster-" + shape + ".svg" }

// The plot's size and margins.
const (
	width, height            = 760, 300
	left, right, top, bottom = 52, 16, 40, 40
)

// colours can be told apart on white and on black.
var colours = []string{"#2f81f7", "#d97706", "#16a34a", "#c026d3"}

// plot draws each sample as a point, over its number. Its text and lines have the
// colour of the reader's theme.
func plot(shape string, all []*measurement) []byte {
	most, highest := 0, 0.0
	for _, m := range all {
		most = max(most, len(m.Samples))
		highest = max(highest, quantile(m.Samples, 0.999))
	}
	step := roundStep(highest / 4)
	limit := step * math.Ceil(highest*1.05/step)
	x := func(n int) float64 { return left + float64(n)*(width-left-right)/float64(most-1) }
	y := func(v float64) float64 { return height - bottom - min(v, limit)*(height-top-bottom)/limit }

	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="sans-serif" font-size="12">`+"\n", width, height)
	out.WriteString("<style>text{fill:#1f2328}line{stroke:#8b949e;stroke-width:.5}" +
		"@media(prefers-color-scheme:dark){text{fill:#e6edf3}}</style>\n")
	fmt.Fprintf(&out, `<title>%s: milliseconds until a change is served</title>`+"\n", shape)
	fmt.Fprintf(&out, `<text x="%d" y="16">%s: ms until served, by number of the change</text>`+"\n", left, shape)
	for v := 0.0; v <= limit+step/2; v += step {
		fmt.Fprintf(&out, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			left, width-right, y(v), y(v), left-6, y(v)+4, math.Round(v*100)/100)
	}
	for i := range 5 {
		n := i * (most - 1) / 4
		fmt.Fprintf(&out, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(n), height-bottom+18, n+1)
	}
	for i, m := range all {
		colour := colours[i%len(colours)]
		fmt.Fprintf(&out, `<text x="%d" y="%d" style="fill:%s">● %s, %s</text>`+"\n", left+i*(width-left-right)/len(all), 32, colour, m.Gateway, m.Mode)
		fmt.Fprintf(&out, `<path stroke="%s" stroke-width="2" stroke-linecap="round" stroke-opacity=".55" d="`, colour)
		for n, v := range m.Samples {
			fmt.Fprintf(&out, "M%.1f %.1fh0", x(n), y(v))
		}
		out.WriteString("\"/>\n")
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// roundStep is the next of 1, 2, 5, 10, 20, …
func roundStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v {
			return m * power
		}
	}
	return 10 * power
}
