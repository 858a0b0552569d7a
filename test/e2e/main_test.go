//go:build linux

package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
)

// parallelCases is how many tests run at a time unless -parallel says
// otherwise: most of a test's time is waiting, so it is more than the cores.
const parallelCases = "4"

// scratch is a short path, since Unix sockets live below it and their paths are
// limited to 108 bytes.
var scratch string

func TestMain(m *testing.M) {
	flag.Parse()
	crlog.SetLogger(logr.Discard()) // of clients of the API server; tests see their errors
	explicit := false
	flag.Visit(func(f *flag.Flag) { explicit = explicit || f.Name == "test.parallel" })
	if !explicit {
		if err := flag.Set("test.parallel", parallelCases); err != nil {
			panic(err)
		}
	}
	var err error
	if scratch, err = os.MkdirTemp("", "gh"); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	stopShared()
	killStrays(scratch)
	if code == 0 {
		_ = os.RemoveAll(scratch)
	} else {
		fmt.Fprintln(os.Stderr, "e2e: logs and state are kept in", scratch)
	}
	os.Exit(code)
}

// tools is what the tests run: the binary under test and the Envoy it shall use.
type tools struct{ gatehouse, envoy string }

// findTools builds the binary (or takes GATEHOUSE_BIN, an absolute path) and has it find or
// install Envoy, once for all tests.
var findTools = sync.OnceValues(func() (tools, error) {
	t := tools{gatehouse: os.Getenv("GATEHOUSE_BIN")}
	if t.gatehouse == "" {
		t.gatehouse = filepath.Join(scratch, "gatehouse")
		build := exec.Command("go", "build", "-o", t.gatehouse, "../../cmd/gatehouse")
		if out, err := build.CombinedOutput(); err != nil {
			return t, fmt.Errorf("build gatehouse: %w\n%s", err, out)
		}
	}
	path, err := exec.Command(t.gatehouse, "envoy", "path").Output()
	if err != nil {
		if out, err := exec.Command(t.gatehouse, "envoy", "install").CombinedOutput(); err != nil {
			return t, fmt.Errorf("gatehouse envoy install: %w\n%s", err, out)
		}
		if path, err = exec.Command(t.gatehouse, "envoy", "path").Output(); err != nil {
			return t, fmt.Errorf("gatehouse envoy path after install: %w", err)
		}
	}
	t.envoy = strings.TrimSpace(string(path))
	return t, nil
})

// needTools skips a short run and fails the test when the binary can't be had.
func needTools(t *testing.T) tools {
	t.Helper()
	if testing.Short() {
		t.Skip("end-to-end tests start Envoy; run without -short")
	}
	found, err := findTools()
	if err != nil {
		t.Fatal(err)
	}
	return found
}
