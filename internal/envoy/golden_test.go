package envoy

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden holds each testdata/*.txtar against what it becomes: for every
// KIND.yaml with an ir value, KIND.json with the proto and KIND.errors.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			golden(t, file)
		})
	}
}

func golden(t *testing.T, file string) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	out := &txtar.Archive{Comment: a.Comment}
	got := map[string]string{}
	emit := func(name, text string) {
		got[name] = text
		out.Files = append(out.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	all := &setup{tables: map[string][]*ir.Host{}}
	for _, f := range a.Files {
		if !strings.HasSuffix(f.Name, ".yaml") {
			want[f.Name] = string(f.Data)
			continue
		}
		out.Files = append(out.Files, f)
		text, errs := render(t, f, all)
		base := strings.TrimSuffix(f.Name, ".yaml")
		emit(base+".json", text)
		if len(errs) > 0 {
			emit(base+".errors", strings.Join(errs, "\n")+"\n")
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(out), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got (go test -run TestGolden -update):\n%s", diff)
	}
	if err := all.validate(t); err != nil {
		t.Errorf("the real Envoy refuses it: %v", err)
	}
}

// render returns the proto of one ir value, and puts the value where Envoy will
// be asked about it.
func render(t *testing.T, f txtar.File, all *setup) (text string, errs []string) {
	t.Helper()
	read := func(into any) {
		if err := yaml.UnmarshalStrict(f.Data, into); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
	}
	failed := func(err error) {
		if err != nil {
			errs = append(errs, err.Error())
		}
	}
	switch kind := strings.TrimSuffix(path.Base(f.Name), ".yaml"); kind {
	case "host":
		h := &ir.Host{}
		read(h)
		part, ruleErrs := HostPart(h)
		for _, err := range ruleErrs {
			failed(err)
		}
		table := fmt.Sprintf("http-%d", 80+len(all.listeners))
		all.tables[table] = []*ir.Host{h}
		all.listeners = append(all.listeners, &ir.Listener{Name: table, Addresses: []string{"127.0.0.1"}, Chains: []ir.Chain{{Table: table}}})
		c := &routev3.RouteConfiguration{}
		if err := proto.Unmarshal(part.Body, c); err != nil {
			t.Fatal(err)
		}
		return format(t, c.VirtualHosts[0]), errs
	case "listener":
		l := &ir.Listener{}
		read(l)
		r, all0 := Listener(l.Name, l)
		for _, err := range all0 {
			failed(err)
		}
		all.listeners = append(all.listeners, l)
		for _, c := range l.Chains {
			if c.TLS != nil {
				for _, name := range c.TLS.Certificates {
					all.secrets = append(all.secrets, secret(t, SecretName(name), newKey(t, "P-256"), nil))
				}
			}
		}
		return format(t, decode(t, r, &listenerv3.Listener{})), errs
	case "backend":
		b := &ir.Backend{}
		read(b)
		r, err := Cluster(b)
		failed(err)
		all.backends = append(all.backends, b)
		if !b.TLS.IsZero() {
			all.upstreamSetup(t, b)
		}
		return format(t, decode(t, r, &clusterv3.Cluster{})), errs
	case "endpoints":
		e := &ir.Endpoints{}
		read(e)
		r, err := LoadAssignment(ClusterName(e.Backend), e.Endpoints)
		failed(err)
		name := fmt.Sprintf("%d", len(all.backends))
		all.backends = append(all.backends, &ir.Backend{Named: name, Protocol: ir.HTTP1})
		if err == nil {
			all.endpoints = append(all.endpoints, &ir.Endpoints{Backend: ir.NamedBackend(name), Endpoints: e.Endpoints})
		}
		return format(t, decode(t, r, &endpointv3.ClusterLoadAssignment{})), errs
	default:
		t.Fatalf("unknown kind %q", kind)
		return "", nil
	}
}

// format prints a proto. protojson varies its blanks on purpose.
func format(t *testing.T, m proto.Message) string {
	t.Helper()
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}
