package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/test/bars"
)

func TestRecord(t *testing.T) {
	for _, c := range []struct {
		name     string
		args     []string
		recorded bool
		fails    string
	}{
		{"held", []string{"-bar", "x", "-limit", "0", "-value", "0"}, true, ""},
		{"missed", []string{"-bar", "x", "-limit", "0", "-value", "1"}, true, "1 of 1 bars are missed"},
		{"no figure", []string{"-bar", "x", "-limit", "0"}, true, "not measured"},
		{"no bar", []string{"-limit", "0", "-value", "0"}, false, "-bar"},
		{"no limit", []string{"-bar", "x", "-value", "0"}, false, "-limit"},
		{"what is left over", []string{"-bar", "x", "-limit", "0", "-value", "0", "1"}, false, `"1"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "bars.json")
			err := run(t.Context(), append([]string{"-file", file}, c.args...), io.Discard)
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("got %v, want %q", err, c.fails)
			}
			if all, err := bars.Read(file); (err == nil) != c.recorded || c.recorded && (len(all) != 1 || all[0].Commit == "" || all[0].Machine == "") {
				t.Errorf("the file has %v (%v), want a figure: %t", all, err, c.recorded)
			}
		})
	}
}
