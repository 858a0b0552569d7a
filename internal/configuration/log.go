package configuration

import (
	"io"
	"log/slog"
)

// Logs makes the loggers of components, each with its own level.
type Logs struct {
	log  Log
	sink io.Writer
}

// NewLogs returns loggers that write to sink.
func NewLogs(l Log, sink io.Writer) Logs { return Logs{l, sink} }

// For returns the logger of a component. The empty name stands for all others.
func (l Logs) For(component string) *slog.Logger {
	name := l.log.Level
	if own, ok := l.log.Levels[component]; ok {
		name = own
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(name)) // checked with the configuration
	opts := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewJSONHandler(l.sink, opts)
	if l.log.Format == "text" {
		handler = slog.NewTextHandler(l.sink, opts)
	}
	log := slog.New(handler)
	if component != "" {
		log = log.With("component", component)
	}
	return log
}
