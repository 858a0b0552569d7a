package proxy

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseLine(t *testing.T) {
	l := parseLine("2026-11-21T10:42:04.799+00:00 warning config gRPC config for x rejected: a\\nb")
	if !l.Time.Equal(time.Date(2026, 11, 21, 10, 42, 4, 799e6, time.UTC)) || l.Level != slog.LevelWarn ||
		l.Logger != "config" || l.Text != "gRPC config for x rejected: a\\nb" {
		t.Errorf("%+v", l)
	}
	for _, s := range []string{"", "Traceback (most recent call last):", `{"path": "/", "code": 200, "x": 1}`} {
		if got := (Line{Level: slog.LevelInfo, Text: s}); parseLine(s+"\n") != got {
			t.Errorf("%q: %+v", s, parseLine(s))
		}
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy.log")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	write := func(s string) {
		t.Helper()
		if _, err := out.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}
	write("from an earlier run\n")
	var got []string
	tl, err := openTail(path, func(l Line) { got = append(got, l.Text) })
	if err != nil {
		t.Fatal(err)
	}
	defer tl.file.Close()
	expect := func(want ...string) {
		t.Helper()
		if err := tl.read(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %.100q, want %.100q", got, want)
		}
		got = nil
	}
	expect()
	write("a\nb\npart")
	expect("a", "b")
	write("ial\n")
	expect("partial")
	if last := tl.last(); !slices.Equal(last, []string{"a", "b", "partial"}) {
		t.Errorf("last lines %q", last)
	}

	// A line without end does not fill the memory.
	write(strings.Repeat("x", maxLine+1))
	if err := tl.read(); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || len(got[0]) < maxLine {
		t.Errorf("%d lines of an endless one", len(got))
	}
	write("\n")
	if err := tl.read(); err != nil {
		t.Fatal(err)
	}

	// The file is emptied and what comes then is seen.
	write(strings.Repeat(strings.Repeat("y", 1023)+"\n", logLimit/1024+1))
	if err := tl.read(); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Size() != 0 {
		t.Errorf("the file has %d bytes", info.Size())
	}
	got = nil
	write("after\n")
	expect("after")
	if last := tl.last(); len(last) != lastLines || last[lastLines-1] != "after" {
		t.Errorf("%d last lines", len(last))
	}
}
