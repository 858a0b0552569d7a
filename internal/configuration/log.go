package configuration

import (
	"io"
	"log/slog"
	"reflect"
)

// Component is a part of a controller whose log lines say so, and whose level can be set.
type Component string

// The components.
const (
	LogSource   Component = "source"
	LogXDS      Component = "xds"
	LogStatus   Component = "status"
	LogInfra    Component = "infra"
	LogIdentity Component = "identity"
	LogReplicas Component = "replicas" // what replicas tell each other
	LogProxy    Component = "proxy"    // the Envoy of static-mode
	LogControl  Component = "control"  // all else
)

// Components are all that there are.
var Components = []Component{LogSource, LogXDS, LogStatus, LogInfra, LogIdentity, LogReplicas, LogProxy, LogControl}

// Logs makes the loggers of components, each with its own level. Copies have the levels in common.
type Logs struct {
	format string
	levels map[Component]*slog.LevelVar
	sink   io.Writer
}

// NewLogs returns loggers that write to sink.
func NewLogs(l Log, sink io.Writer) Logs {
	out := Logs{l.Format, map[Component]*slog.LevelVar{}, sink}
	for _, c := range Components {
		out.levels[c] = new(slog.LevelVar)
	}
	out.SetLevels(l)
	return out
}

// SetLevels changes the levels of loggers that there are, too.
func (l Logs) SetLevels(to Log) {
	for component, level := range l.levels {
		name := to.Level
		if own, ok := to.Levels[component]; ok {
			name = own
		}
		var parsed slog.Level
		_ = parsed.UnmarshalText([]byte(name)) // checked with the configuration
		level.Set(parsed)
	}
}

// For returns the logger of a component.
func (l Logs) For(component Component) *slog.Logger {
	opts := &slog.HandlerOptions{Level: l.levels[component]}
	var handler slog.Handler = slog.NewJSONHandler(l.sink, opts)
	if l.format == "text" {
		handler = slog.NewTextHandler(l.sink, opts)
	}
	return slog.New(handler).With("component", string(component))
}

// SameButLevels reports whether two configurations differ in nothing but levels of logs.
func (c *Configuration) SameButLevels(other *Configuration) bool {
	a, b := *c, *other
	a.Log.Level, a.Log.Levels, b.Log.Level, b.Log.Levels = "", nil, "", nil
	return reflect.DeepEqual(&a, &b)
}
