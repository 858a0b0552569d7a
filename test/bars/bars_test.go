package bars

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHeld(t *testing.T) {
	b := Bar{Name: "heap", Unit: "KiB", Limit: 10}
	for _, c := range []struct {
		name   string
		figure Figure
		held   bool
		text   string
	}{
		{"below", b.Measured(9.12345), true, "heap: 9.123 KiB (bar 10)"},
		{"at the limit", b.Measured(10), true, "heap: 10 KiB (bar 10)"},
		{"above", b.Measured(10.13), false, "heap: 10.13 KiB (bar 10)"},
		{"not measured", b.Absent(), false, "heap: not measured (bar 10)"},
		{"nothing allowed, nothing counted", Bar{Name: "wrong answers"}.Measured(0), true, "wrong answers: 0 (bar 0)"},
		{"nothing allowed, nothing measured", Bar{Name: "wrong answers"}.Absent(), false, "wrong answers: not measured (bar 0)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.figure.Held != c.held || c.figure.String() != c.text {
				t.Errorf("%q, held %t; want %q, %t", c.figure, c.figure.Held, c.text, c.held)
			}
			err := Missed([]Figure{c.figure})
			if (err == nil) != c.held {
				t.Errorf("Missed says %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("Missed says %q, which does not name %q", err, c.text)
			}
		})
	}
}

// A run of one program must not lose what others have recorded.
func TestRecordMerges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bars", "04.json")
	a, b, c := Bar{Name: "a", Limit: 1}, Bar{Name: "b", Unit: "s", Limit: 2}, Bar{Name: "c", Limit: 3}
	old, renewed := Origin{Commit: "old", Machine: "m"}, Origin{Commit: "new", Machine: "m"}
	if err := Record(path, old, []Figure{a.Measured(5), b.Measured(1.5)}); err != nil {
		t.Fatal(err)
	}
	if err := Record(path, renewed, []Figure{c.Absent(), a.Measured(0)}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[
  {
    "bar": "a",
    "value": 0,
    "unit": "",
    "limit": 1,
    "held": true,
    "commit": "new",
    "machine": "m"
  },
  {
    "bar": "b",
    "value": 1.5,
    "unit": "s",
    "limit": 2,
    "held": true,
    "commit": "old",
    "machine": "m"
  },
  {
    "bar": "c",
    "value": null,
    "unit": "",
    "limit": 3,
    "held": false,
    "commit": "new",
    "machine": "m"
  }
]
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the file (-want +got):\n%s", diff)
	}
}

// What can't be read must not be overwritten.
func TestRecordKeepsWhatIsNotUnderstood(t *testing.T) {
	path := filepath.Join(t.TempDir(), "04.json")
	if err := os.WriteFile(path, []byte("<<<<<<< a merge conflict"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Record(path, Origin{}, []Figure{Bar{Name: "a"}.Measured(0)})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want an error that names %s", err, path)
	}
	if text, _ := os.ReadFile(path); string(text) != "<<<<<<< a merge conflict" {
		t.Errorf("the file is now %q", text)
	}
}
