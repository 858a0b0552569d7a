package faults

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTable protects `make faults` from names that have gone: go test says nothing of them.
func TestTable(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\|[^|]*\\| `([a-z/]+)`((?: `Test[A-Za-z0-9]+`)+) \\|").FindAllStringSubmatch(string(text), -1)
	if len(rows) < 20 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		files, err := filepath.Glob(filepath.Join("../..", row[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(source)
		}
		for name := range strings.FieldsSeq(strings.ReplaceAll(row[2], "`", "")) {
			if !strings.Contains(all.String(), "\nfunc "+name+"(") {
				t.Errorf("%s has no %s", row[1], name)
			}
		}
	}
}
