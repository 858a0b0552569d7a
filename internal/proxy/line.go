package proxy

import (
	"log/slog"
	"strings"
	"time"
)

// logFormat is what Envoy is told to print: local time, level, logger, and the
// message with its newlines escaped, so that a message is a line.
const logFormat = "%Y-%m-%dT%T.%e%z %l %n %_"

// logTime is the first field of logFormat.
const logTime = "2006-01-02T15:04:05.000-07:00"

// Line is one line that Envoy has printed.
type Line struct {
	// Time is zero if the line has no prefix of its own (a crash handler's,
	// an access log's).
	Time  time.Time
	Level slog.Level
	// Logger is the part of Envoy that has written the line ("main", "config",
	// "upstream").
	Logger string
	// Text is the message, without a final newline.
	Text string
}

// Envoy has one level below and one above those of slog.
var logLevels = map[string]slog.Level{
	"trace":    slog.LevelDebug - 4,
	"debug":    slog.LevelDebug,
	"info":     slog.LevelInfo,
	"warning":  slog.LevelWarn,
	"error":    slog.LevelError,
	"critical": slog.LevelError + 4,
}

// parseLine splits a line. One that does not follow logFormat is kept
// whole, at level info.
func parseLine(s string) Line {
	s = strings.TrimRight(s, "\r\n")
	if fields := strings.SplitN(s, " ", 4); len(fields) == 4 {
		at, err := time.Parse(logTime, fields[0])
		level, ok := logLevels[fields[1]]
		if err == nil && ok {
			return Line{Time: at, Level: level, Logger: fields[2], Text: fields[3]}
		}
	}
	return Line{Level: slog.LevelInfo, Text: s}
}
