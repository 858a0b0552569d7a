package file

import (
	"fmt"
	"math"
	"runtime"
	"testing"
)

// TestBookkeeping bounds what is kept of a file beside its objects: with many
// files, that is a good part of the memory of a route.
func TestBookkeeping(t *testing.T) {
	const files, limit = 1000, 0.7 * 1024
	t.Chdir(t.TempDir())
	write(t, "first/route.yaml", routeSet(0))
	for i := range files {
		write(t, fmt.Sprintf("in/route-%04d.yaml", i), routeSet(i))
	}
	s := newSource(t, Options{Paths: []string{"in"}})
	first := newSource(t, Options{Paths: []string{"first"}})
	first.validator = s.validator // compiles the schemas, which aren't to be counted
	if _, err := first.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What else lives or goes at the moment, such as what tests before have left, is measured
	// with it: the least counts.
	perFile := math.Inf(1)
	for range 3 {
		perFile = min(perFile, bookkeeping(t, s, files))
	}
	t.Logf("%.0f bytes a file", perFile)
	if perFile < 0 || perFile > limit {
		t.Errorf("%.0f bytes a file with 3 objects, want at most %.0f", perFile, limit)
	}
}

// bookkeeping is what a source keeps for each of its files beside their objects, of which each
// has three, in bytes.
func bookkeeping(t *testing.T, s *Source, files int) float64 {
	t.Helper()
	st := newState(s)
	batch, err := st.scanAll(t.Context(), nil)
	if err != nil || len(batch.Set) != 3*files {
		t.Fatalf("%d objects, %v", len(batch.Set), err)
	}
	with := heap()
	runtime.KeepAlive(st)
	without := heap()
	runtime.KeepAlive(s)
	runtime.KeepAlive(batch)
	return (float64(with) - float64(without)) / float64(files)
}
