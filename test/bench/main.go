package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gatehouse-dev/gatehouse/test/bars"
)

// Where the figures go. Those of a part of a run must not pass for the whole.
const (
	wholeReport = "bench/results/latest.json"
	partReport  = "bench/results/part.json"
)

type options struct {
	routes      []int
	only        string   // inProcessHalf, realHalf or empty for both
	shapes      []string // with the real Envoy; all if empty
	binary      string
	out         string
	changes     int
	turns       int // of processes that measure in process
	concurrency int
	profile     string
	verbose     bool
	whole       bool   // everything is measured, and nothing else is done meanwhile
	strict      bool   // a missed bar is an error
	figures     string // the file of all bars' figures; empty for those of their parts
}

const (
	inProcessHalf = "in-process"
	realHalf      = "real"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	var routes, shapesWanted string
	var quick bool
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.StringVar(&routes, "routes", "100,1000,5000,20000", "numbers of routes")
	fs.BoolVar(&quick, "quick", false, "short for --routes 100,1000")
	fs.StringVar(&o.only, "only", "", "in-process or real: run this half alone")
	fs.StringVar(&shapesWanted, "shapes", "", "shapes to measure with the real Envoy, with commas between, beside cold-start; all if empty")
	fs.StringVar(&o.binary, "bin", os.Getenv("GATEHOUSE_BIN"), "gatehouse binary (default: GATEHOUSE_BIN, or built for the run)")
	fs.StringVar(&o.out, "out", "", "where the figures go (default: "+wholeReport+", or "+partReport+" for a part of them)")
	fs.IntVar(&o.changes, "changes", 200, "changes of each shape and round in process; half as many, 300 at most, with the real Envoy")
	fs.IntVar(&o.turns, "turns", 11, "processes that measure in process, one after the other; one with --profile")
	fs.IntVar(&o.concurrency, "concurrency", 2, "Envoy's worker threads")
	fs.StringVar(&o.profile, "profile", "", "directory for Go profiles; distorts the figures a little")
	enforced := bars.Enforced(fs)
	fs.BoolVar(&o.verbose, "v", false, "log every wrong answer")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if quick {
		routes = "100,1000"
	}
	for field := range strings.SplitSeq(routes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 10 || n > 90_000 { // names have five digits, and additions need some
			return o, fmt.Errorf("--routes: %q is not a number from 10 to 90000", field)
		}
		o.routes = append(o.routes, n)
	}
	if o.only != "" && o.only != inProcessHalf && o.only != realHalf {
		return o, fmt.Errorf("--only: %q is neither %s nor %s", o.only, inProcessHalf, realHalf)
	}
	if shapesWanted != "" {
		var err error
		if o.shapes, err = bars.Chosen(shapesWanted, shapes); err != nil {
			return o, fmt.Errorf("--shapes: %w", err)
		}
	}
	if o.changes < 20 || o.changes > 5000 {
		return o, fmt.Errorf("--changes: %d is not between 20 and 5000", o.changes)
	}
	if o.turns < 1 || o.turns > 100 {
		return o, fmt.Errorf("--turns: %d is not between 1 and 100", o.turns)
	}
	if o.profile != "" {
		o.turns = 1 // each would take the place of the one before
	}
	if o.concurrency < 1 {
		return o, fmt.Errorf("--concurrency: %d is not positive", o.concurrency)
	}
	if o.only != inProcessHalf && runtime.GOOS != "linux" {
		return o, errors.New("the real Envoy is measured by /proc, so on Linux only: use --only in-process")
	}
	o.strict = *enforced
	o.whole = routes == fs.Lookup("routes").DefValue && o.only == "" && o.shapes == nil && o.profile == ""
	o.figures = bars.Scratch
	switch {
	case o.out != "": // somebody else's figures, such as those of a comparison
	case o.whole:
		o.out, o.figures = wholeReport, ""
	default:
		o.out = partReport
	}
	return o, nil
}

// sizes are the numbers of routes, as the flag takes them.
func (o options) sizes() string {
	words := make([]string, len(o.routes))
	for i, n := range o.routes {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	if o.profile != "" {
		runtime.MemProfileRate = 4096 // the default would miss most of a short run
		if err := os.MkdirAll(o.profile, 0o750); err != nil {
			return err
		}
	}
	r := &report{Origin: bars.Here(ctx)}
	err = measure(ctx, o, log, r)
	if err != nil && len(r.Results) == 0 {
		return err
	}
	return conclude(os.Stdout, o, log, r, err)
}

// conclude prints and keeps the figures of a run that ended with err, and fails if
// a bar is missed.
func conclude(out io.Writer, o options, log *slog.Logger, r *report, err error) error {
	r.markdown(out)
	if err != nil { // an interrupted run has figures worth seeing, not worth keeping
		return errors.Join(err, bars.Write(partReport, r))
	}
	if err := bars.Write(o.out, r); err != nil {
		return err
	}
	var figures []bars.Figure
	var files []string
	for _, part := range parts {
		of := r.figures(part, o.routes)
		if !o.whole {
			of = measured(of)
		}
		file := cmp.Or(o.figures, bars.File(part))
		if err := bars.Record(file, r.Origin, of); err != nil {
			return err
		}
		figures, files = append(figures, of...), append(files, file)
	}
	log.Info("figures written", "file", o.out, "bars", slices.Compact(files))
	missed := bars.Missed(figures)
	if missed != nil && !o.strict {
		log.Warn("bars are missed", "error", missed)
		return nil
	}
	return missed
}

func measure(ctx context.Context, o options, log *slog.Logger, r *report) error {
	if o.only != realHalf {
		if err := measureInProcess(ctx, o, log, r); err != nil {
			return err
		}
		debug.FreeOSMemory() // the clients of the other half should not pay for this one's heap
	}
	if o.only == inProcessHalf {
		return nil
	}
	binary, remove, err := gatehouse(ctx, o.binary)
	if err != nil {
		return err
	}
	defer remove()
	b := &real{log: log, report: r, binary: binary, shapes: o.shapes, concurrency: o.concurrency, changes: min(o.changes/2, 300), profile: o.profile}
	defer b.tearDown()
	if err := b.setUp(ctx); err != nil {
		return err
	}
	for _, n := range o.routes {
		if err := b.run(ctx, n); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		shapes []string
		run    func(context.Context) error
	}{
		{[]string{requestPrice}, b.prices},
		{[]string{plainEnvoy}, b.overPlain},
		{[]string{figuresPrice}, b.overUncounted},
		{[]string{listenerSetStart, listenerSetAdd}, b.listenerSets},
		{[]string{manyRoutes}, b.largeDirectory},
	} {
		if len(o.shapes) > 0 && !slices.ContainsFunc(step.shapes, func(s string) bool { return slices.Contains(o.shapes, s) }) {
			continue
		}
		log.Info("with the real Envoy", "shapes", step.shapes)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(step.shapes, ", "), err)
		}
	}
	return nil
}

// gatehouse returns the binary to measure, and builds one if none was named.
func gatehouse(ctx context.Context, named string) (path string, remove func(), err error) {
	if named != "" {
		path, err = filepath.Abs(named)
		return path, func() {}, err
	}
	dir, err := os.MkdirTemp("", "gatehouse-bench-bin-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path = filepath.Join(dir, "gatehouse")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "github.com/gatehouse-dev/gatehouse/cmd/gatehouse")
	if text, err := build.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("build gatehouse: %w\n%s", err, text)
	}
	return path, remove, nil
}
