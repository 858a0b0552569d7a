package golden

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the expected output into the golden files")

// TestGolden holds the output of every file's objects against what it expects.
func TestGolden(t *testing.T) {
	each(t, func(t *testing.T, f *file) {
		got := f.render(t, f.evaluate(t))
		if *update {
			if err := os.WriteFile(f.path, f.format(got), 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
		if diff := cmp.Diff(f.want, got); diff != "" {
			t.Errorf("-want +got (go test ./test/golden -update writes it; then hold it against the specification):\n%s", diff)
		}
	})
}

// TestFormatted keeps the files as -update would write them.
func TestFormatted(t *testing.T) {
	each(t, func(t *testing.T, f *file) {
		on, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(on, f.format(f.want)) {
			t.Errorf("not as -update writes it: input first, then %s", outputs)
		}
	})
}

// format puts a file together again, with other outputs.
func (f *file) format(out map[string]string) []byte {
	a := &txtar.Archive{Comment: f.comment, Files: append([]txtar.File(nil), f.inputs...)}
	for _, name := range outputs {
		if text := out[name]; text != "" {
			a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
		}
	}
	return txtar.Format(a)
}
