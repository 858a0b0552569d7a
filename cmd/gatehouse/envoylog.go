package main

import (
	"context"
	"log/slog"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
)

// envoyLog passes on what the Envoys print: all of it, or what a person should
// know of.
type envoyLog struct {
	log *slog.Logger
	all bool
	run context.Context // only asked whether it is over
}

func (e envoyLog) take(gateway object.Name, line proxy.Line) {
	if !e.all && !e.matters(line) {
		return
	}
	e.log.Log(context.Background(), max(line.Level, slog.LevelInfo), "envoy: "+line.Text, "gateway", gateway.String(), "logger", line.Logger)
}

// harmless are the beginnings of warnings that tell of nothing to do: one that each
// start prints, though the system's limits hold, and one that any client of HTTP/3
// can bring about as often as it likes, and that QUIC makes up for.
var harmless = []string{
	"Kernel dropped ",
	"There is no configured limit to the number of allowed active downstream connections",
}

func (e envoyLog) matters(line proxy.Line) bool {
	for _, text := range harmless {
		if strings.HasPrefix(line.Text, text) {
			return false
		}
	}
	if e.run.Err() != nil { // it warns of its own end, which is asked for
		return line.Level >= slog.LevelError
	}
	return line.Level >= slog.LevelWarn
}
