package envoy

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// TestProtectedFields protects what patches can't change from a field that is misspelt, or has another name in a later
// version of Envoy: it would be protected no more.
func TestProtectedFields(t *testing.T) {
	for _, c := range []struct {
		of     proto.Message
		fields []protoreflect.Name
	}{
		{&listenerv3.Listener{}, patchableListener}, {&listenerv3.FilterChain{}, protectedChain}, {&hcmv3.HttpConnectionManager{}, protectedHCM},
	} {
		d := c.of.ProtoReflect().Descriptor()
		for _, name := range c.fields {
			if d.Fields().ByName(name) == nil {
				t.Errorf("%s has no field %s", d.FullName(), name)
			}
		}
	}
}

// randomPatch is a patch with one operation on what a listener has, or might have.
func randomPatch(r *rand.Rand, document any) []byte {
	var paths []string
	var walk func(at string, v any)
	walk = func(at string, v any) {
		paths = append(paths, at)
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(at+"/"+strings.ReplaceAll(strings.ReplaceAll(k, "~", "~0"), "/", "~1"), v[k])
			}
		case []any:
			for i := range v {
				walk(fmt.Sprintf("%s/%d", at, i), v[i])
			}
		}
	}
	walk("", document)
	pick := func() string { return paths[r.IntN(len(paths))] }
	values := []any{
		nil, true, 1, -1, 1 << 40, "x", "1s", "", []any{}, map[string]any{}, map[string]any{"exact_balance": map[string]any{}},
		map[string]any{"name": "lua", "typed_config": map[string]any{
			"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua", "default_source_code": map[string]any{"inline_string": "function envoy_on_request(h) end"},
		}},
		map[string]any{"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
	}
	names := []string{"/server_name", "/access_log/-", "/connection_balance_config", "/tcp_backlog_size", "/http_filters/-", "/http_filters/5", "/generate_request_id", "/stat_prefix", "/address", "/-", "/0", "/disabled"}
	ops := make([]map[string]any, 1+r.IntN(3))
	for i := range ops {
		o := map[string]any{"op": []string{"add", "remove", "replace", "move", "copy"}[r.IntN(5)], "path": pick(), "from": pick(), "value": values[r.IntN(len(values))]}
		if r.IntN(2) == 0 {
			o["path"] = pick() + names[r.IntN(len(names))]
		}
		ops[i] = o
	}
	text, err := json.Marshal(ops)
	if err != nil {
		panic(err)
	}
	return text
}

// patches is how many random patches are tried: 10,000 for the bar.
var patches = flag.Int("patches", 1000, "how many random patches TestRandomPatches tries")

// TestRandomPatches protects what guards from patches, whatever they say: where a listener listens, who gets in, and the filters
// that requests meet stay as they are. The real Envoy takes what is left, or says no to that listener alone.
func TestRandomPatches(t *testing.T) {
	s := plain([]*ir.Host{{Domain: "*"}})
	plainListener, errs := Listener("http", s.listeners[0])
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	before := decode(t, plainListener, &listenerv3.Listener{})
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	filters := func(l *listenerv3.Listener) []*hcmv3.HttpFilter {
		m := &hcmv3.HttpConnectionManager{}
		if err := l.GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(m); err != nil {
			t.Fatal(err)
		}
		return m.GetHttpFilters()
	}
	ours := filters(before)
	r := rand.New(rand.NewPCG(1, 2))
	taken := map[string]*listenerv3.Listener{}
	applied := 0
	for range *patches {
		p := Patch{Name: "*", Operations: randomPatch(r, document)}
		if CheckPatch(p) != nil {
			continue
		}
		o, err := OfferResource(plainListener)
		if err != nil {
			t.Fatal(err)
		}
		if o.TakePatch(p.Operations) != nil {
			continue
		}
		out := o.Resource()
		applied++
		after := decode(t, out, &listenerv3.Listener{})
		all := filters(after)
		switch {
		case after.GetName() != before.GetName() || !proto.Equal(after.GetAddress(), before.GetAddress()) || len(after.GetFilterChains()) != len(before.GetFilterChains()):
			t.Fatalf("%s moves the listener", p.Operations)
		case len(after.GetListenerFilters()) != len(before.GetListenerFilters()) || after.GetDefaultFilterChain() != nil:
			t.Fatalf("%s lets others in", p.Operations)
		case len(all) < len(ours):
			t.Fatalf("%s takes filters away", p.Operations)
		}
		for i, f := range ours[:len(ours)-1] {
			if !proto.Equal(f, all[i]) {
				t.Fatalf("%s changes http_filters[%d]", p.Operations, i)
			}
		}
		if len(taken) < 60 {
			taken[string(p.Operations)] = after
		}
	}
	if applied == 0 {
		t.Fatal("no patch could be applied")
	}
	refused := 0
	for _, text := range slices.Sorted(maps.Keys(taken)) {
		if err := s.validateInstead(t, taken[text]); err != nil {
			refused++
			t.Logf("Envoy refuses what %s leaves: %v", text, err)
		}
	}
	t.Logf("of %d patches %d could be applied; of %d of these Envoy refused %d", *patches, applied, len(taken), refused)
}

// validateInstead asks Envoy whether it would load the setup with another listener in the place of its own.
func (s *setup) validateInstead(t *testing.T, l *listenerv3.Listener) error {
	t.Helper()
	dir := socketDir(t)
	b := s.bootstrap(t, filepath.Join(dir, "admin"))
	l = proto.CloneOf(l)
	s.inlineTable(t, l.FilterChains[0], nil)
	b.StaticResources.Listeners = []*listenerv3.Listener{l}
	out, err := exec.CommandContext(t.Context(), binary(t), "--mode", "validate", "-c", write(t, dir, b), "--log-level", "error").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
