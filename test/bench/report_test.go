package main

import (
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/test/bars"
)

func TestJudge(t *testing.T) {
	r := &report{}
	r.add(routeEdit, 1000, "cpu_ms", 0.4)
	r.add(routeEdit, 5000, "cpu_ms", 0.5)
	r.add(routeEdit, 20000, "cpu_ms", 0.8)
	r.add(coldStart, 1000, "seconds", 60)
	r.add(endpointChange, 100, "listener_updates", 0)
	r.add(endpointChange, 1000, "listener_updates", 1)
	for _, c := range []struct{ name, shape, metric, told, verdict string }{
		{"a size and a ratio", routeEdit, "cpu_ms", "is 2.00", "**missed** 20,000 over 1,000"},
		{"a size that was not measured", coldStart, "seconds", "≤ 10 at 5,000", ""},
		{"every size", endpointChange, "listener_updates", "≤ 0", "**missed** at 1,000"},
		{"no bar", routeEdit, "requests", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			told, verdict := judge(r, c.shape, c.metric)
			if !strings.Contains(told, c.told) || verdict != c.verdict {
				t.Errorf("told %q, verdict %q; want %q, %q", told, verdict, c.told, c.verdict)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.012345: "0.0123", 0.5: "0.500", 1.5: "1.50", 42.26: "42.3", 1234567: "1,234,567", 999: "999",
	} {
		if got := number(bars.Significant(v)); got != want {
			t.Errorf("%v prints as %s, want %s", v, got, want)
		}
	}
}

func TestMedians(t *testing.T) {
	var turns []*report
	for _, v := range []float64{0.3, 0.1, 0.2} {
		r := &report{}
		r.add(routeEdit, 1000, "cpu_ms", v)
		r.add(routeEdit, 20000, "cpu_ms", 1-v)
		turns = append(turns, r)
	}
	r := &report{}
	r.medians(turns)
	want := []result{{routeEdit, 1000, "cpu_ms", 0.2}, {routeEdit, 20000, "cpu_ms", 0.8}}
	if !slices.Equal(r.Results, want) {
		t.Errorf("got %v, want %v", r.Results, want)
	}
}

func TestFigures(t *testing.T) {
	r := &report{}
	for _, n := range []int{1000, 5000, 20000} {
		r.add(routeEdit, n, "cpu_ms", float64(n)/10_000)
		r.add(routeEdit, n, "wrong_answers", 0)
	}
	r.add(routeAdd, 5000, "wrong_answers", 3)
	r.add(coldStart, 5000, "heap_kib_per_route", 10.13)
	asked := []int{1000, 5000, 20000}
	var all []bars.Figure
	for _, part := range parts {
		all = append(all, r.figures(part, asked)...)
	}
	got := map[string]string{}
	for _, f := range all {
		got[f.Bar] = f.String()
	}
	for name, want := range map[string]string{
		"cold-start heap_kib_per_route at 5,000": "10.13 KiB (bar 10)",
		"cold-start seconds at 5,000":            "not measured (bar 10)",
		"route-edit cpu_ms at 5,000":             "0.5 ms (bar 1)",
		"route-edit cpu_ms, 20,000 over 1,000":   "20 (bar 1.5)",
		"route-edit wrong_answers":               "0 (bar 0)",
		"route-add wrong_answers":                "not measured (bar 0)", // at two of three sizes

		"control-plane CPU of an edit, 20,000 over 1,000 routes": "20 (bar 1.3)",
		"route edited at 5,000 routes, p99":                      "not measured (bar 30)",
	} {
		if want = name + ": " + want; got[name] != want {
			t.Errorf("got %q, want %q", got[name], want)
		}
	}
	if len(got) != len(limits) {
		t.Errorf("%d bars have %d names", len(limits), len(got))
	}
	if err := bars.Missed(all); err == nil {
		t.Error("no bar is missed")
	}
	// What a part of a run was not asked for is no miss.
	for _, f := range measured(all) {
		if f.Value == nil {
			t.Errorf("%s counts as measured", f)
		}
	}
}

func TestParseBars(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the half with the real Envoy is refused elsewhere")
	}
	for _, c := range []struct {
		args   string
		strict bool
		bars   string
		fails  bool
	}{
		{"", true, "", false},
		{"--bars=report", false, "", false},
		{"--bars=enforce --only in-process", true, bars.Scratch, false},
		{"--quick", true, bars.Scratch, false},
		{"--out /tmp/x", true, bars.Scratch, false},
		{"--shapes envoy-killed", true, bars.Scratch, false},
		{"--shapes envoy-dead", true, "", true},
		{"--profile /tmp/x", true, bars.Scratch, false},
		{"--bars=off", true, "", true},
	} {
		o, err := parse(strings.Fields(c.args))
		if (err != nil) != c.fails || err == nil && (o.strict != c.strict || o.figures != c.bars) {
			t.Errorf("%q: strict %t, figures to %s, error %v", c.args, o.strict, o.figures, err)
		}
	}
}

// Each figure of a whole run goes to the file of its own part.
func TestFiguresOfParts(t *testing.T) {
	t.Chdir(t.TempDir())
	r := &report{Origin: bars.Origin{Commit: "c", Machine: "m"}}
	r.add(toggle, 5000, "wrong_answers", 0)
	r.add(manyRoutes, manyRoutesCount, "wrong_answers", 0)
	r.add(routeEdit, 5000, "wrong_answers", 0)
	o := options{routes: []int{5000}, whole: true, out: wholeReport}
	if err := conclude(io.Discard, o, slog.New(slog.DiscardHandler), r, nil); err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]string{"04": "route-edit wrong_answers", "05b": "100,000 routes from files: wrong answers", "07": "toggle wrong_answers"} {
		all, err := bars.Read(bars.File(part))
		if err != nil {
			t.Fatal(err)
		}
		var held []string
		for _, f := range all {
			if f.Held {
				held = append(held, f.Bar)
			}
		}
		if !slices.Equal(held, []string{want}) {
			t.Errorf("the file of part %s has %q held, want %q", part, held, want)
		}
	}
}

// A script sees by the exit code that a bar is missed.
func TestMissedBarFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		heap   float64
		strict bool
		fails  string
	}{
		{"held", 9.9, true, ""},
		{"missed", 10.13, true, "cold-start heap_kib_per_route at 5,000: 10.13 KiB (bar 10)"},
		{"missed and only reported", 10.13, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			o := options{
				routes: []int{5000}, strict: c.strict,
				out: filepath.Join(dir, "part.json"), figures: filepath.Join(dir, "bars.json"),
			}
			r := &report{Origin: bars.Origin{Commit: "c", Machine: "m"}}
			r.add(coldStart, 5000, "heap_kib_per_route", c.heap)
			err := conclude(io.Discard, o, slog.New(slog.DiscardHandler), r, nil)
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("got %v, want %q", err, c.fails)
			}
			got, err := bars.Read(o.figures)
			if err != nil || len(got) != 1 || *got[0].Value != c.heap || got[0].Commit != "c" {
				t.Errorf("the file of the bars has %v (%v)", got, err)
			}
		})
	}
	t.Run("a whole run with a figure missing", func(t *testing.T) {
		dir := t.TempDir()
		o := options{
			routes: []int{5000}, strict: true, whole: true,
			out: filepath.Join(dir, "latest.json"), figures: filepath.Join(dir, "bars.json"),
		}
		err := conclude(io.Discard, o, slog.New(slog.DiscardHandler), &report{}, nil)
		if err == nil || !strings.Contains(err.Error(), "not measured") {
			t.Errorf("got %v, want bars that were not measured", err)
		}
	})
}
