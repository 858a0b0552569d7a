package file

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

func TestZZ(t *testing.T) {
	const files = 5000
	t.Chdir(t.TempDir())
	for i := range files {
		write(t, fmt.Sprintf("in/route-%05d.yaml", i), routeSet(i))
	}
	s := newSource(t, Options{Paths: []string{"in"}})
	write(t, "one/one.yaml", routeSet(0))
	w := newSource(t, Options{Paths: []string{"one"}})
	w.validator = s.validator
	if _, err := w.Load(t.Context()); err != nil { t.Fatal(err) }
	h0 := heap()
	st := newState(s)
	batch, err := st.scanAll(t.Context(), nil)
	if err != nil { t.Fatal(err) }
	h1 := heap()
	if p := os.Getenv("ZZPROF"); p != "" {
		f, _ := os.Create(p)
		pprof.Lookup("heap").WriteTo(f, 0)
		f.Close()
	}
	runtime.KeepAlive(st)
	*st = state{}
	h2 := heap()
	var os2 []source.Object
	for _, o := range batch.Set { os2 = append(os2, o.DeepCopyObject().(source.Object)) }
	h3 := heap()
	fmt.Printf("total %.0f B/file, bookkeeping %.0f B/file, objects %.0f; deepcopies %.0f\n", float64(h1-h0)/files, float64(h1-h2)/files, float64(h2-h0)/files, float64(h3-h2)/files)
	runtime.KeepAlive(batch)
	runtime.KeepAlive(s)
	runtime.KeepAlive(w)
	runtime.KeepAlive(w.validator)
	runtime.KeepAlive(os2)
}
