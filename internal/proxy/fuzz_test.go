package proxy

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// FuzzMergeBootstrap protects the way between a proxy and its control plane: whatever is
// added to a bootstrap, that stays.
func FuzzMergeBootstrap(f *testing.F) {
	options := BootstrapOptions{
		Gateway: object.Name{Namespace: "ns", Name: "web"}, XDSSocket: "/xds", AdminSocket: "/admin",
	}
	for _, seed := range []string{
		"", "{}", "null", "[]", "static_resources: {clusters: [{name: a}], listeners: null}", "staticResources: {clusters: [{name: xds}]}",
		"static_resources: null", "static_resources: {clusters: null}", "staticResources: {Clusters: []}", "admin: null", "Admin: {}",
		"dynamicResources: {}", "node: {locality: {zone: a}}", "node: null", "node: {Id: x}", "stats_flush_interval: 5s", "stats_config: {stats_tags: []}",
		"a: &a {b: *a}", "layered_runtime: {layers: [{name: x}]}", "a: 1\na: 2", "node: {id: x, ID: y}", "overload_manager: null",
	} {
		f.Add([]byte(seed))
	}
	plain, err := Bootstrap(options)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, additions []byte) {
		options := options
		options.Additions = additions
		text, err := Bootstrap(options)
		if err != nil {
			if !strings.Contains(err.Error(), "additions") {
				t.Fatalf("the error doesn't say what is wrong: %v", err)
			}
			return
		}
		var ours, whole map[string]any
		if err := json.Unmarshal(plain, &ours); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &whole); err != nil {
			t.Fatalf("not JSON: %v", err)
		}
		for _, path := range [][]string{{"admin"}, {"dynamic_resources"}, {"node", "id"}, {"node", "cluster"}} {
			if diff := cmp.Diff(at(ours, path), at(whole, path)); diff != "" {
				t.Fatalf("%s has changed:\n%s", strings.Join(path, "."), diff)
			}
		}
		clusters, _ := at(whole, []string{"static_resources", "clusters"}).([]any)
		if len(clusters) == 0 || !cmp.Equal(clusters[0], at(ours, []string{"static_resources", "clusters"}).([]any)[0]) {
			t.Fatalf("the cluster of the control plane is not there: %v", clusters)
		}
		again, err := Bootstrap(options)
		if err != nil || string(again) != string(text) {
			t.Fatalf("the second time it is another (%v)", err)
		}
	})
}

// at returns what stands at a path of a JSON object; nil for nothing.
func at(from map[string]any, path []string) any {
	var value any = from
	for _, key := range path {
		inner, _ := value.(map[string]any)
		value = inner[key]
	}
	return value
}

// FuzzRecord protects other processes from what stands in the place of a record: nothing
// is taken for an Envoy of ours that is not the process which was recorded.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", "5", `{"pid":-1,"identity":""}`, `{"pid":1,"identity":"1"}`, `{"pid":0}`, `{"pid":1e30}`, `{"pid":4711,"started":"soon"}`,
		`{"pid":2147483648,"identity":"x","started":"2026-11-22T12:00:00Z","binary":"/e","version":"1.40.0","config":"c","draining":true}`,
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, recordFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		s := &Supervisor{cfg: Config{Dir: dir}, log: slog.New(slog.DiscardHandler)}
		if p, r := s.leftover(); p != nil {
			_ = p.handle.Release()
			if now, err := processIdentity(r.PID); r.PID <= 0 || err != nil || now != r.Identity {
				t.Fatalf("process %d is taken for ours", r.PID)
			}
		}
		r, err := readRecord(dir)
		if err != nil || r == nil {
			return
		}
		if err := r.write(dir); err != nil {
			return // a year that can't be written
		}
		again, err := readRecord(dir)
		if diff := cmp.Diff(r, again); diff != "" || err != nil {
			t.Fatalf("what is written is read as something else (%v):\n%s", err, diff)
		}
	})
}

// FuzzLine protects what is logged of Envoy: a line keeps all that it says, and is one line.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		"2026-11-22T12:00:00.123+01:00 warning config a message\n", "2026-11-22T12:00:00.123+01:00 loud config a message", "a b c d", "", "\r\n",
		"envoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL", "version: ff/1.40.0-dev/\x1b/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := parseLine(text)
		if !strings.HasSuffix(strings.TrimRight(text, "\r\n"), l.Text) {
			t.Fatalf("%q became %q", text, l.Text)
		}
		if l.Time.IsZero() != (l.Logger == "" && l.Text == strings.TrimRight(text, "\r\n")) && l.Logger != "" {
			t.Fatalf("%q became %+v", text, l)
		}
		version, err := parseVersion([]byte(text))
		switch {
		case err != nil:
			if len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x1b\n\x00") {
				t.Fatalf("the error is %q", err)
			}
		case !strings.Contains(text, version) || strings.ContainsAny(version, " /\n\t"):
			t.Fatalf("%q has the version %q", text, version)
		}
	})
}
