//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFirstBlueprint follows the page for people who write a blueprint for the first time, up to
// where a cluster is needed.
func TestFirstBlueprint(t *testing.T) {
	t.Parallel()
	page := readGuide(t, "../../docs/guide/first-blueprint.md")
	if len(page.yaml) != 7 || len(page.console) != 3 {
		t.Fatalf("the page has %d blocks of YAML and %d of console", len(page.yaml), len(page.console))
	}
	dir := t.TempDir()
	write := func(blocks ...string) {
		for _, b := range blocks {
			name, _, _ := strings.Cut(strings.TrimPrefix(b, "# "), "\n")
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(line string) (string, error) {
		c := exec.CommandContext(t.Context(), needTools(t).gatehouse, strings.Fields(line)[1:]...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	follow := func(block string) {
		line, want, _ := strings.Cut(strings.TrimPrefix(block, "$ "), "\n")
		if got, err := run(line); err != nil || got != strings.TrimSpace(want) {
			t.Errorf("%s: %v\n%s\nthe page says\n%s", line, err, got, want)
		}
	}
	write(page.yaml[:3]...)
	follow(page.console[0])
	write(strings.Replace(page.yaml[1], "values.issuer", "values.isuer", 1))
	if out, err := run("gatehouse blueprint render ."); err == nil ||
		!strings.Contains(out, "spec.resources[0].template.spec.issuerRef.name: values.isuer is not in spec.valuesSchema, which has issuer there") {
		t.Errorf("a value that is misspelt: %v\n%s", err, out)
	}
	write(page.yaml[1], page.yaml[3])
	follow(page.console[1])
	write(page.yaml[4:6]...)
	follow(page.console[2])
}
