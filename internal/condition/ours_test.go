package condition

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestOurs checks that every type of condition that we set is known as ours. A
// condition of another type would stay in the cluster for ever. The types are those of
// all golden files.
func TestOurs(t *testing.T) {
	files, err := filepath.Glob("../../test/golden/testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	written := regexp.MustCompile(`(?m)^ *- '?(\w+)=(?:True|False|Unknown) `)
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range written.FindAllStringSubmatch(string(text), -1) {
			if found[m[1]] = true; !Ours(m[1]) {
				t.Errorf("%s: condition %s is not known as ours", file, m[1])
			}
		}
	}
	if len(found) < 8 {
		t.Errorf("only %v found", found)
	}
	if Ours("example.com/Policy") || Ours("Ready") {
		t.Error("others' conditions are ours")
	}
}
