package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/gatehouse-dev/gatehouse/test/bars"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var b bars.Bar
	var file string
	value := math.NaN()
	fs := flag.NewFlagSet("record", flag.ContinueOnError)
	fs.StringVar(&b.Name, "bar", "", "what is measured; a figure that the file has under this name is replaced")
	fs.Float64Var(&b.Limit, "limit", math.NaN(), "the most that the figure may be")
	fs.StringVar(&b.Unit, "unit", "", "such as s or MiB; empty for what is counted")
	fs.Float64Var(&value, "value", value, "the figure; without it the bar is recorded as missed")
	fs.StringVar(&file, "file", bars.File("04"), "where the figures are")
	if err := fs.Parse(args); err != nil {
		return err
	}
	switch {
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case b.Name == "":
		return errors.New("-bar says what is measured")
	case math.IsNaN(b.Limit) || math.IsInf(b.Limit, 0):
		return errors.New("-limit says the most that the figure may be")
	case math.IsInf(value, 0):
		return errors.New("-value is not finite")
	}
	figure := b.Absent()
	if !math.IsNaN(value) {
		figure = b.Measured(value)
	}
	figures := []bars.Figure{figure}
	bars.Print(out, figures)
	return errors.Join(bars.Record(file, bars.Here(ctx), figures), bars.Missed(figures))
}
