package terminal

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LogLine is a log record, ready for the screen.
type LogLine struct {
	At    time.Time
	Level slog.Level
	Text  string
}

// lines breaks the record over lines of a width, quiet unless it is a warning.
func (l LogLine) lines(s Style, width int) []string {
	const clock = "15:04:05 "
	const indent = "  "
	paint := s.dim
	switch {
	case l.Level >= slog.LevelError:
		paint = s.red
	case l.Level >= slog.LevelWarn:
		paint = s.yellow
	}
	var out []string
	for i, text := range wrap(Clean(l.Text), width-len(indent)-len(clock), 0) {
		lead := strings.Repeat(" ", len(clock))
		if i == 0 {
			lead = l.At.Format(clock)
		}
		out = append(out, indent+s.dim(lead)+paint(text))
	}
	return out
}

// Plain returns the record as a line of text.
func (l LogLine) Plain() string {
	return l.At.Format("15:04:05") + " " + l.Level.String() + " " + Clean(l.Text)
}

// screenHandler hands records to a live screen, in a shape for people: the message,
// then what belongs to it.
type screenHandler struct {
	live  *Live
	level slog.Level
	group string
	attrs string
}

func (h *screenHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *screenHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		writeAttr(&b, h.group, a)
		return true
	})
	h.live.add(LogLine{At: r.Time, Level: r.Level, Text: b.String()})
	return nil
}

func (h *screenHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	b.WriteString(h.attrs)
	for _, a := range attrs {
		writeAttr(&b, h.group, a)
	}
	out := *h
	out.attrs = b.String()
	return &out
}

func (h *screenHandler) WithGroup(name string) slog.Handler {
	out := *h
	out.group += name + "."
	return &out
}

func writeAttr(b *strings.Builder, group string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range value.Group() {
			writeAttr(b, group, inner)
		}
		return
	}
	text := value.String()
	if text == "" || slices.ContainsFunc([]rune(text), func(r rune) bool { return r == ' ' || r == '"' || r == '=' }) {
		text = strconv.Quote(text)
	}
	b.WriteString(" " + group + a.Key + "=" + text)
}
