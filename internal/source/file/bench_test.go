package file

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

func routeSet(i int) string {
	return fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: route-%[1]d
  namespace: bench
spec:
  parentRefs:
  - name: gateway
  hostnames:
  - host-%[1]d.example.com
  rules:
  - matches:
    - path: {type: PathPrefix, value: /}
    backendRefs:
    - name: service-%[1]d
      port: 80
---
apiVersion: v1
kind: Service
metadata: {name: service-%[1]d, namespace: bench}
spec:
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: service-%[1]d-a
  namespace: bench
  labels: {kubernetes.io/service-name: service-%[1]d}
addressType: IPv4
endpoints:
- addresses: [10.0.0.1]
ports: [{name: http, port: 8080}]
---
`, i)
}

// BenchmarkRoute is one HTTPRoute from text to validated object.
func BenchmarkRoute(b *testing.B) {
	s := newSource(b, Options{Paths: []string{"in"}})
	r := &reader{validator: s.validator, foreign: s.foreign}
	text := split([]byte(routeSet(1)))[0].text
	r.read(text, false, nil)
	b.ReportAllocs()
	for b.Loop() {
		if doc := r.read(text, false, nil); doc.only.object == nil {
			b.Fatal(doc.only.faults())
		}
	}
}

// BenchmarkLoad is a start with 1,000 routes, each with its Service and
// EndpointSlice, and shows what stays in memory of each.
func BenchmarkLoad(b *testing.B) {
	const routes = 1000
	b.Chdir(b.TempDir())
	var text strings.Builder
	for i := range routes {
		text.WriteString(routeSet(i))
	}
	write(b, "in/routes.yaml", text.String())
	s := newSource(b, Options{Paths: []string{"in"}})
	before := heap()
	var st *state
	var batch source.Batch
	for b.Loop() {
		st = newState(s)
		var err error
		if batch, err = st.scanAll(b.Context(), nil); err != nil || len(batch.Set) != 3*routes {
			b.Fatalf("%d objects, %v", len(batch.Set), err)
		}
	}
	batch = source.Batch{}
	b.ReportMetric(float64(heap()-before)/1024/routes, "KiB/route")
	runtime.KeepAlive(st)
}

// BenchmarkKeep is BenchmarkLoad with a state directory: the first start writes down all that
// there is, later ones read that.
func BenchmarkKeep(b *testing.B) {
	const routes = 1000
	b.Chdir(b.TempDir())
	var text strings.Builder
	for i := range routes {
		text.WriteString(routeSet(i))
	}
	write(b, "in/routes.yaml", text.String())
	s := newSource(b, Options{Paths: []string{"in"}})
	var behind time.Duration // after the batch
	start := func(b *testing.B, dir string) {
		st := newState(s)
		k := openKeeper(dir, s.log)
		defer k.close()
		st.keep(k)
		if batch, err := st.scanAll(b.Context(), nil); err != nil || len(batch.Set) != 3*routes {
			b.Fatalf("%d objects, %v", len(batch.Set), err)
		}
		b.StopTimer()
		until := time.Now()
		st.save()
		behind += time.Since(until)
		b.StartTimer()
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			start(b, b.TempDir())
		}
		b.ReportMetric(behind.Seconds()*1e3/float64(b.N), "ms-behind/op")
	})
	b.Run("later", func(b *testing.B) {
		dir := b.TempDir()
		behind = 0
		for b.Loop() {
			start(b, dir)
		}
		b.ReportMetric(behind.Seconds()*1e3/float64(b.N), "ms-behind/op")
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkEdit is the change of one document in a file of 5,000.
func BenchmarkEdit(b *testing.B) {
	b.Chdir(b.TempDir())
	var rest strings.Builder
	for i := range 5000 {
		rest.WriteString(config(fmt.Sprintf("c%d", i), "1") + "---\n")
	}
	write(b, "in/a.yaml", config("edited", "0")+"---\n"+rest.String())
	st := newState(newSource(b, Options{Paths: []string{"in"}}))
	if _, err := st.scanAll(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		n++
		b.StopTimer()
		write(b, "in/a.yaml", config("edited", fmt.Sprint(n))+"---\n"+rest.String())
		b.StartTimer()
		batch, err := st.scanAll(b.Context(), nil)
		if err != nil || len(batch.Set) != 1 {
			b.Fatalf("%d objects, %v", len(batch.Set), err)
		}
	}
}
