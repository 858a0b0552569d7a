package remote_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/gatehouse-dev/gatehouse/internal/configserver"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/file"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote"
)

// counted counts the bytes of its connections, in both directions.
type counted struct {
	net.Listener
	bytes *atomic.Int64
}

func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.bytes}, err
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

const manyGateway = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: gatehouse
  listeners: [{name: http, port: 8080, protocol: HTTP}]
---
apiVersion: v1
kind: Service
metadata: {name: app}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: app, labels: {kubernetes.io/service-name: app}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1]}]
ports: [{port: 8081}]
`

func manyRoute(n, change int) string {
	return fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r%d}
spec:
  parentRefs: [{name: gw}]
  hostnames: [h%d.test]
  rules:
  - matches: [{path: {value: /p%d}}]
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-change, value: "%d"}]}}]
    backendRefs: [{name: app, port: 80}]
`, n, n, n%10, change)
}

// resources are the versions of all that proxies are sent, by type and name. A version is a hash of the bytes.
func resources(t *testing.T, batches ...source.Batch) map[string]string {
	t.Helper()
	o := pipeline.Local(pipeline.ControllerName, "", []string{"127.0.0.1"}, nil)
	o.Topology.ImplicitClass = pipeline.StandaloneClass
	o.NoProxies = true
	p := pipeline.New(o)
	out := map[string]string{}
	for _, b := range batches {
		for _, u := range p.Updates(p.Apply(b)) {
			for _, r := range u.Set {
				out[fmt.Sprint(u.Gateway, r.Type, r.Name)] = r.Version
			}
		}
	}
	return out
}

// TestManyRoutes protects whoever moves manifests to a config server: what becomes of 5,000 routes is byte for byte what
// files give, and an edit costs what the edit is. The bars of 4 kB and 5 ms are measured here.
func TestManyRoutes(t *testing.T) {
	routes, edits := 5000, 50
	if testing.Short() {
		routes, edits = 200, 5
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "."+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "."+name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("gateway.yaml", manyGateway)
	for n := range routes {
		write(fmt.Sprintf("r%d.yaml", n), manyRoute(n, 0))
	}
	log := slog.New(slog.DiscardHandler)
	server := configserver.New(configserver.Options{Access: configserver.Access{Anybody: true}, Log: log})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	type emitted struct {
		at time.Time
		b  source.Batch
	}
	run := func(of func(context.Context, func(source.Batch)) error, then func(source.Batch)) <-chan emitted {
		out := make(chan emitted, 2*edits+10)
		running.Go(func() {
			err := of(ctx, func(b source.Batch) {
				at := time.Now()
				then(b)
				out <- emitted{at, b}
			})
			if err != nil {
				t.Error(err)
			}
		})
		return out
	}
	next := func(from <-chan emitted) emitted {
		t.Helper()
		select {
		case e := <-from:
			return e
		case <-time.After(longest):
			t.Fatal("nothing comes")
			return emitted{}
		}
	}
	files, err := file.New(file.Options{Paths: []string{dir}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	fromFiles := run(files.Run, server.Apply)
	first := next(fromFiles)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wire atomic.Int64
	running.Go(func() {
		if err := server.Serve(ctx, counted{inner, &wire}, insecure.NewCredentials()); err != nil {
			t.Error(err)
		}
	})
	r, err := remote.New(remote.Options{Address: inner.Addr().String(), TLS: remote.TLS{Plaintext: true}, StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	fromRemote := run(r.Run, func(source.Batch) {})
	batches, told := []source.Batch{first.b}, []source.Batch{next(fromRemote).b}
	t.Logf("%d routes: %d bytes on the wire at first", routes, wire.Load())

	var late []time.Duration
	var sent []int64
	for i := range edits {
		time.Sleep(20 * time.Millisecond) // files that change one after the other are gathered
		before := wire.Load()
		write(fmt.Sprintf("r%d.yaml", i*routes/edits), manyRoute(i*routes/edits, i+1))
		f, c := next(fromFiles), next(fromRemote)
		batches, told = append(batches, f.b), append(told, c.b)
		late, sent = append(late, c.at.Sub(f.at)), append(sent, wire.Load()-before)
	}
	slices.Sort(late)
	t.Logf("an edit: %d bytes on the wire at most, %s later than by files (p50; at most %s)", slices.Max(sent), late[len(late)/2], late[len(late)-1])
	if most := slices.Max(sent); most > 4000 {
		t.Errorf("an edit takes %d bytes", most)
	}
	want, got := resources(t, batches...), resources(t, told...)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 3 {
		t.Errorf("of %d resources, these differ:\n%s", len(want), diff)
	}
	t.Logf("%d resources are the same", len(slices.Collect(maps.Keys(want))))
}
