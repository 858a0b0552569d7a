package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/test/bars"
)

func measured(shape string, size int, figures ...figure) *measurement {
	return &measurement{source: source{Shape: shape, Gateway: "a/b", Mode: joined, Size: size}, Figures: figures}
}

// A run with fewer routes must not be taken for one that holds the bars, and a figure
// that a full run lost must not either.
func TestBarsAreForTheirSize(t *testing.T) {
	all := []string{propagation}
	small := &report{Measurements: []*measurement{measured(propagation, 10, figure{"mean_ms", 1})}}
	if got := judged(small, all); len(got) != 0 {
		t.Errorf("ten routes are judged: %v", got)
	}
	full := &report{Measurements: []*measurement{
		measured(propagation, 3000, figure{"mean_ms", 17}, figure{"wrong_answers", 0}),
		measured(propagation, 3000, figure{"mean_ms", 19}),
	}}
	var got []string
	for _, f := range judged(full, all) {
		got = append(got, f.String())
	}
	want := []string{
		"cluster: 3,000 routes one after another, until served, mean: 19 ms (bar 18)",
		"cluster: 3,000 routes one after another, p50 of the last 500 over the first 500: not measured (bar 1.3)",
		"cluster: 3,000 routes one after another, wrong answers: 0 (bar 0)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := judged(&report{}, all); len(got) != 3 || bars.Missed(got) == nil {
		t.Errorf("a shape that measured nothing has %v", got)
	}
}

func TestEveryBarIsOfAShape(t *testing.T) {
	for _, l := range limits {
		if !slices.Contains(names(), l.shape) {
			t.Errorf("no shape %s measures %s", l.shape, l.Name)
		}
	}
}

func TestSamplesAreSummed(t *testing.T) {
	var samples []float64
	for i := range 2 * window {
		samples = append(samples, float64(1+i/window)) // first 1, then 2
	}
	r, from := &report{}, source{Shape: propagation}
	r.addSamples(from, samples)
	for name, want := range map[string]float64{"mean_ms": 1.5, "max_ms": 2, "p99_ms": 2, "last_over_first": 2} {
		if got, ok := r.of(from).value(name); !ok || got != want {
			t.Errorf("%s is %v (%t), want %v", name, got, ok, want)
		}
	}
}

// What one run measures must not lose what others did, and must replace its own.
func TestMergeKeepsOthers(t *testing.T) {
	r := &report{Measurements: []*measurement{measured(scale, 5000), measured(propagation, 3000)}}
	r.merge(&report{Measurements: []*measurement{measured(propagation, 100)}}, bars.Origin{Commit: "c"})
	var got []string
	for _, m := range r.Measurements {
		got = append(got, m.Shape+m.Commit)
	}
	if want := []string{propagation + "c", scale}; !slices.Equal(got, want) || r.Measurements[0].Size != 100 {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The page keeps what a person wrote around the table.
func TestPublish(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	write := func(text string) {
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := measured(propagation, 3, figure{"mean_ms", 4.5})
	m.Samples = []float64{1, 8, 4.5}
	r := &report{Measurements: []*measurement{m}}
	write("before\n" + tableBegins + "old\n" + tableEnds + "\nafter\n")
	for range 2 {
		if err := r.publish(options{plots: dir, page: page}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); !strings.HasPrefix(s, "before\n") || !strings.HasSuffix(s, "\nafter\n") ||
		strings.Contains(s, "old") || strings.Count(s, "| `mean_ms` | 4.5 |") != 1 {
		t.Errorf("the page is now\n%s", text)
	}
	if svg, err := os.ReadFile(filepath.Join(dir, "cluster-propagation.svg")); err != nil || strings.Count(string(svg), "h0") != 3 {
		t.Errorf("the plot has other than three points (%v):\n%s", err, svg)
	}
	write("no place\n")
	if err := r.publish(options{plots: dir, page: page}); err == nil || !strings.Contains(err.Error(), page) {
		t.Errorf("got %v, want an error that names the page", err)
	}
}

func TestRoundStep(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 0.3: 0.5, 1: 1, 1.2: 2, 4: 5, 7: 10, 30: 50} {
		if got := roundStep(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("roundStep(%v) is %v, want %v", v, got, want)
		}
	}
}
