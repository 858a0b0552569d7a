package bars

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Where figures are kept, from the root of the checkout.
const (
	dir = "bench/results/bars/"
	// Scratch is for runs whose figures are worth seeing and not worth keeping.
	// It is not checked in.
	Scratch = dir + "scratch.json"
)

// File has the figures of the bars of a part of the project, such as "04".
func File(part string) string { return dir + part + ".json" }

// Bar is an upper limit.
type Bar struct {
	Name  string
	Unit  string // empty for what is counted
	Limit float64
}

// Figure is what was measured for a bar.
type Figure struct {
	Bar   string   `json:"bar"`
	Value *float64 `json:"value"` // nil: it could not be measured
	Unit  string   `json:"unit"`
	Limit float64  `json:"limit"`
	Held  bool     `json:"held"`
	Origin
}

// Measured returns the figure of a bar.
func (b Bar) Measured(value float64) Figure {
	value = Significant(value)
	return Figure{Bar: b.Name, Value: &value, Unit: b.Unit, Limit: b.Limit, Held: value <= b.Limit}
}

// Absent is the figure of a bar that should have been measured and was not.
func (b Bar) Absent() Figure {
	return Figure{Bar: b.Name, Unit: b.Unit, Limit: b.Limit}
}

func (f Figure) String() string {
	value := "not measured"
	if f.Value != nil {
		value = strings.TrimSpace(strconv.FormatFloat(*f.Value, 'f', -1, 64) + " " + f.Unit)
	}
	return fmt.Sprintf("%s: %s (bar %s)", f.Bar, value, strconv.FormatFloat(f.Limit, 'f', -1, 64))
}

// Significant rounds to four digits: more would claim what no method here gives.
func Significant(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	if scale < 1 {
		return math.Round(v)
	}
	return math.Round(v*scale) / scale
}

// Print writes a line for each figure.
func Print(w io.Writer, figures []Figure) {
	for _, f := range figures {
		verdict := "held"
		if !f.Held {
			verdict = "MISSED"
		}
		fmt.Fprintf(w, "%-6s  %s\n", verdict, f)
	}
}

// Missed returns an error that names every figure that does not hold its bar.
func Missed(figures []Figure) error {
	var missed []string
	for _, f := range figures {
		if !f.Held {
			missed = append(missed, f.String())
		}
	}
	if missed == nil {
		return nil
	}
	return fmt.Errorf("%d of %d bars are missed:\n  %s", len(missed), len(figures), strings.Join(missed, "\n  "))
}

// Record puts figures into a file, in the place of those that it has of the same
// bars.
func Record(path string, from Origin, figures []Figure) error {
	all, err := Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, f := range figures {
		f.Origin = from
		at := slices.IndexFunc(all, func(other Figure) bool { return other.Bar == f.Bar })
		if at < 0 {
			all = append(all, f)
		} else {
			all[at] = f
		}
	}
	return Write(path, all)
}

// Judge prints and records figures, and fails if one misses its bar, unless that is only to be
// reported.
func Judge(w io.Writer, path string, from Origin, figures []Figure, enforce bool) error {
	Print(w, figures)
	if err := Record(path, from, figures); err != nil || !enforce {
		return err
	}
	return Missed(figures)
}

// Read returns the figures of a file.
func Read(path string) ([]Figure, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []Figure
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// Write stores a value as JSON for a file that is checked in, whole or not at all.
func Write(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return err
	}
	if err := os.Chmod(temporary, 0o644); err != nil { //nolint:gosec // it is checked in for all to read
		return err
	}
	return os.Rename(temporary, path)
}
