package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gatehouse-dev/gatehouse/test/port"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gatehouse": main})
}

// TestCommands runs the scripts in testdata: what a person types, and what they
// get.
func TestCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			self, err := exec.LookPath("gatehouse")
			if err != nil {
				return err
			}
			env.Setenv("TESTBIN", filepath.Dir(self)) // a PATH without an Envoy
			for _, name := range []string{"FREE", "ALSO_FREE"} {
				free, err := port.Free()
				if err != nil {
					return err
				}
				env.Setenv(name, net.JoinHostPort("127.0.0.1", strconv.Itoa(free)))
			}
			env.Setenv("XDG_RUNTIME_DIR", filepath.Join(env.WorkDir, "run"))
			env.Setenv("GATEHOUSE_CACHE", filepath.Join(env.WorkDir, "cache"))
			return nil
		},
	})
}

// TestReferenceIsCurrent protects the command reference from falling behind.
func TestReferenceIsCurrent(t *testing.T) {
	fresh := filepath.Join(t.TempDir(), "commands.md")
	root := newRoot()
	root.SetArgs([]string{"reference", fresh})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(fresh)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != string(want) {
		t.Error("docs/reference/commands.md is not what the program says of itself: run make generate")
	}
}
