package proxy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// Nothing that is called pip.py, in the working directory or where the environment leads,
// is run in pip's place: somebody else may have put it there.
func TestPipIsIsolated(t *testing.T) {
	slow.Skip(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	dir := t.TempDir()
	marker := filepath.Join(dir, "ran")
	if err := os.WriteFile(filepath.Join(dir, "pip.py"), []byte("open('"+marker+"', 'w')\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, environment := range []string{"", dir, "."} {
		t.Setenv("PYTHONPATH", environment)
		for _, runs := range []string{t.TempDir(), dir} {
			for _, p := range pips {
				if p[0] == "pip3" || p[0] == "pip" {
					continue // a script, which runs what it was installed with
				}
				_ = p.command(t.Context(), runs, "--version").Run() // there may be none
				if _, err := os.Stat(marker); err == nil {
					t.Fatalf("%q has run pip.py, with PYTHONPATH=%q in %s", p, environment, runs)
				}
			}
		}
	}
}
