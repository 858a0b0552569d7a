package topology

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

const ourController = "gatehouse.dev/controller"

// history is what has been said of the inputs last.
type history struct {
	objects map[object.Key]source.Object
	unread  map[string]string
	kept    map[object.Name]parameters.Kept
	pairs   map[object.Name]KeptCertificate
	sets    map[keyset.Key]keyset.Answer
}

func newHistory() *history {
	return &history{map[object.Key]source.Object{}, map[string]string{}, map[object.Name]parameters.Kept{}, map[object.Name]KeptCertificate{}, map[keyset.Key]keyset.Answer{}}
}

// step is what one transaction changes.
type step struct {
	source.Batch
	kept  map[object.Name]parameters.Kept // without settings: no longer
	pairs map[object.Name]KeptCertificate // without a pair: no longer
	sets  map[keyset.Key]keyset.Answer    // that says nothing: no longer
}

// step applies a step to a world.
func (w *world) step(t testing.TB, s step) {
	t.Helper()
	c := w.engine.Update(func(tx *flow.Tx) {
		w.in.Apply(tx, s.Batch)
		for name, kept := range s.kept {
			if kept.Settings == nil {
				w.in.Kept.Delete(tx, name)
			} else {
				w.in.Kept.Set(tx, name, kept)
			}
		}
		for name, kept := range s.pairs {
			if kept.Pair == nil {
				w.in.KeptCertificates.Delete(tx, name)
			} else {
				w.in.KeptCertificates.Set(tx, name, kept)
			}
		}
		for k, answer := range s.sets {
			if answer == (keyset.Answer{}) {
				w.in.KeySets.Delete(tx, k)
			} else {
				w.in.KeySets.Set(tx, k, answer)
			}
		}
	})
	for _, f := range c.Failures {
		t.Fatalf("%v\n%s", f, f.Stack)
	}
}

// draw makes up the next step and records it.
func (h *history) draw(t *rapid.T, in *Inputs) step {
	var s step
	for range rapid.IntRange(1, 8).Draw(t, "changes") {
		o := someObject.Draw(t, "object")
		k := keyOf(t, in, o)
		// A batch names an object once.
		if slices.ContainsFunc(s.Set, func(o source.Object) bool { return keyOf(t, in, o) == k }) || slices.Contains(s.Deleted, k) {
			continue
		}
		if rapid.IntRange(0, 3).Draw(t, "delete?") == 0 {
			delete(h.objects, k)
			s.Deleted = append(s.Deleted, k)
			continue
		}
		h.objects[k] = o
		s.Set = append(s.Set, o)
	}
	if rapid.IntRange(0, 3).Draw(t, "unread?") == 0 {
		kind := rapid.SampledFrom([]string{"ConfigMap", "ClusterTrustBundle"}).Draw(t, "unread")
		why := rapid.SampledFrom([]string{"", "nobody may"}).Draw(t, "why")
		s.Unread = map[string]string{kind: why}
		maps.Copy(h.unread, s.Unread)
	}
	if rapid.IntRange(0, 3).Draw(t, "kept?") == 0 {
		name := object.Name{Namespace: someNamespace.Draw(t, "namespace"), Name: someName.Draw(t, "gateway")}
		s.kept = map[object.Name]parameters.Kept{name: {UID: someUID.Draw(t, "uid"), Settings: maybe(t, someSettings, "settings"), Allow: maybe(t, rapid.Custom(drawAllow), "allow")}}
		maps.Copy(h.kept, s.kept)
	}
	if rapid.IntRange(0, 3).Draw(t, "pair?") == 0 {
		name := object.Name{Namespace: someNamespace.Draw(t, "namespace"), Name: someName.Draw(t, "secret")}
		s.pairs = map[object.Name]KeptCertificate{name: drawKeptCertificate(t, name)}
		maps.Copy(h.pairs, s.pairs)
	}
	if rapid.IntRange(0, 3).Draw(t, "set?") == 0 {
		k := keyset.Key{Location: someLocation.Draw(t, "location"), Reach: rapid.SampledFrom([]keyset.Reach{keyset.Public, keyset.Host}).Draw(t, "reach")}
		s.sets = map[keyset.Key]keyset.Answer{k: rapid.SampledFrom([]keyset.Answer{{}, {Keys: "A"}, {Keys: "B", Problem: "slow"}, {Problem: "down"}}).Draw(t, "answer")}
		maps.Copy(h.sets, s.sets)
	}
	return s
}

// steps tells the same in steps of one change each.
func (h *history) steps() (out []step) {
	for _, k := range slices.SortedFunc(maps.Keys(h.objects), object.Key.Compare) {
		out = append(out, step{Batch: source.Batch{Set: []source.Object{h.objects[k]}}})
	}
	for _, kind := range slices.Sorted(maps.Keys(h.unread)) {
		out = append(out, step{Batch: source.Batch{Unread: map[string]string{kind: h.unread[kind]}}})
	}
	for _, name := range slices.SortedFunc(maps.Keys(h.kept), object.Name.Compare) {
		out = append(out, step{kept: map[object.Name]parameters.Kept{name: h.kept[name]}})
	}
	for _, name := range slices.SortedFunc(maps.Keys(h.pairs), object.Name.Compare) {
		out = append(out, step{pairs: map[object.Name]KeptCertificate{name: h.pairs[name]}})
	}
	for _, k := range slices.SortedFunc(maps.Keys(h.sets), func(a, b keyset.Key) int {
		return cmp.Or(cmp.Compare(a.URL(), b.URL()), cmp.Compare(a.Reach, b.Reach))
	}) {
		answer := h.sets[k]
		out = append(out, step{sets: map[keyset.Key]keyset.Answer{k: answer}})
	}
	return out
}

// someOptions are those of a host with its own files, and of a cluster.
var someOptions = rapid.SampledFrom([]func() Options{
	func() Options {
		o := settings{
			ImplicitClass: "gatehouse", SharedHost: true, DefaultAddresses: []string{"127.0.0.1"},
			Local: []string{"127.0.0.1", "127.0.0.2", "0.0.0.0"}, SystemAuthorities: "/etc/ssl/cert.pem",
		}.options()
		o.Experimental = true
		return o
	},
	func() Options {
		o := settings{Provisioned: true}.options()
		o.Reads = func(n *corev1.Namespace) bool { return n.Labels["team"] != "c" }
		return o
	},
})

// TestIncrementalEqualsFromScratch protects the law that a history leaves no trace:
// after any of them every table is that of the final inputs alone, whatever the
// order in which these come.
func TestIncrementalEqualsFromScratch(t *testing.T) {
	makePair(t, "ecdsa")
	makePair(t, "other")
	base := decode(t, working)
	rapid.Check(t, func(rt *rapid.T) {
		options := someOptions.Draw(rt, "options")()
		w := newWorld(options)
		h := newHistory()
		if rapid.IntRange(0, 2).Draw(rt, "from nothing?") > 0 {
			for _, o := range base {
				h.objects[keyOf(rt, w.in, o)] = o
			}
			w.set(t, base...)
		}
		for range rapid.IntRange(1, 8).Draw(rt, "transactions") {
			w.step(t, h.draw(rt, w.in))
		}
		fresh := newWorld(options)
		for _, s := range rapid.Permutation(h.steps()).Draw(rt, "order") {
			fresh.step(t, s)
		}
		if d := gocmp.Diff(fresh.print(t), w.print(t)); d != "" {
			rt.Fatalf("nodes differ (-from scratch +incremental):\n%s", d)
		}
		for _, s := range w.engine.Stats() {
			if d := differences(s.Table, fresh.table(t, s.Table), w.table(t, s.Table)); d != "" {
				rt.Fatalf("table %s differs (-from scratch +incremental):\n%s", s.Table, d)
			}
		}
		checkInvariants(rt, w)
	})
}

// coarse are the tables whose values are equal, by a method of their own, although
// they hold different objects: a Service's routes are not run again for what a policy
// says of another Service.
var coarse = []string{"topology-service-policies"}

// differences tells two versions of a table apart. Methods that compare nodes are not
// trusted: what they forget is what this is to find.
func differences(table string, scratch, incremental map[string]any) string {
	// Both versions are made of the same objects, which need no look inside.
	same := gocmp.FilterValues(func(a, b metav1.Object) bool { return a == b }, gocmp.Ignore())
	all := gocmp.Exporter(func(reflect.Type) bool { return true })
	if slices.Contains(coarse, table) {
		return gocmp.Diff(scratch, incremental, same, all)
	}
	if reflect.DeepEqual(scratch, incremental) {
		return ""
	}
	d := gocmp.Diff(scratch, incremental, same, all)
	if d == "" {
		d = "not to be seen by a method Equal"
	}
	return d
}

// table returns the entries of a table by the text of their keys.
func (w *world) table(t testing.TB, name string) map[string]any {
	t.Helper()
	entries, ok := w.engine.Dump(name)
	if !ok {
		t.Fatalf("no table %s", name)
	}
	out := map[string]any{}
	for k, v := range entries {
		out[fmt.Sprintf("%T %+v", k, k)] = v
	}
	return out
}

// TestEveryInputIsDrawn protects TestIncrementalEqualsFromScratch from an input that it
// forgets: every table of objects gets some, and loses all of them again.
func TestEveryInputIsDrawn(t *testing.T) {
	makePair(t, "ecdsa")
	makePair(t, "other")
	w := newWorld(Options{})
	for d := range kind.All.Rows() {
		goType := reflect.TypeOf(d.New())
		if !slices.ContainsFunc(kindsDrawn, func(d drawn) bool { return d.goType == goType }) {
			t.Errorf("no %s is drawn", goType)
		}
	}
	empty := map[string]bool{} // tables that nothing was drawn for
	inputs := flow.New()
	NewInputs(inputs, kind.All)
	for _, s := range inputs.Stats() {
		empty[s.Table] = true
	}
	delete(empty, "other-objects") // every kind of kind.All has a table of its own
	h := newHistory()
	steps := rapid.Custom(func(rt *rapid.T) step { return h.draw(rt, w.in) })
	for seed := range 200 {
		w.step(t, steps.Example(seed))
		for _, s := range w.engine.Stats() {
			if s.Entries > 0 {
				delete(empty, s.Table)
			}
		}
	}
	if len(empty) > 0 {
		t.Errorf("nothing is drawn for %q", slices.Sorted(maps.Keys(empty)))
	}
	end := step{Batch: source.Batch{Deleted: slices.Collect(maps.Keys(h.objects)), Unread: map[string]string{}}, kept: map[object.Name]parameters.Kept{}, pairs: map[object.Name]KeptCertificate{}, sets: map[keyset.Key]keyset.Answer{}}
	for kind := range h.unread {
		end.Unread[kind] = ""
	}
	for name := range h.kept {
		end.kept[name] = parameters.Kept{}
	}
	for name := range h.pairs {
		end.pairs[name] = KeptCertificate{}
	}
	for k := range h.sets {
		end.sets[k] = keyset.Answer{}
	}
	w.step(t, end)
	for _, s := range w.engine.Stats() {
		if s.Entries > 0 {
			t.Errorf("%d entries remain in the table %s", s.Entries, s.Table)
		}
	}
}

// checkInvariants holds of every graph.
func checkInvariants(t *rapid.T, w *world) {
	w.engine.View(func(c *flow.Ctx) {
		all := maps.Collect(flow.All(c, w.graph.Listeners))
		maps.Insert(all, flow.All(c, w.graph.SetListeners))
		counts := map[ListenerKey]int{}
		servedBy := map[servedHost]ListenerKey{}
		for k, a := range flow.All(c, w.graph.Attachments) {
			counts[k.Listener]++
			l, ok := all[k.Listener]
			if !ok || l.Frontend() != a.Frontend {
				t.Fatalf("%s: no such listener, or another frontend", k)
			}
			for _, h := range a.Hosts {
				if !covers(l.Hostname, hostnameOf(h.Domain)) {
					t.Fatalf("%s: host %q is not the listener's", k, h.Domain)
				}
				host := servedHost{portOf(k.Listener.Gateway(), l.Port, l.Protocol), "", h.Domain}
				if l.Protocol == gwv1.HTTPSProtocolType { // its hostname is chosen before there is a host
					host.hostname = domain(l.Hostname)
				}
				if other, ok := servedBy[host]; ok && other != k.Listener {
					t.Fatalf("%+v: routes of %s and %s are mixed", host, other, k.Listener)
				}
				servedBy[host] = k.Listener
			}
		}
		for k, n := range flow.All(c, w.graph.AttachedRoutes) {
			if counts[k] != n {
				t.Fatalf("%s: %d routes counted, %d attached", k, n, counts[k])
			}
		}
		served := map[distinctKey]ListenerKey{}
		for k, l := range all {
			if !l.Serves {
				continue
			}
			at := distinctKey{gatewayPort: portOf(k.Gateway(), l.Port, l.Protocol), hostname: l.Hostname}
			if other, ok := served[at]; ok {
				t.Fatalf("%s and %s serve the same", k, other)
			}
			served[at] = k
			if l.Protocol == gwv1.HTTPSProtocolType && len(l.Certificates) == 0 {
				t.Fatalf("%s serves TLS without a certificate", k)
			}
		}
	})
}

// servedHost is a host that only one listener may serve.
type servedHost struct {
	gatewayPort
	hostname string // of an HTTPS listener
	domain   string
}

// hostnameOf is the pattern whose domain is d.
func hostnameOf(d string) string {
	if d == "*" {
		return ""
	}
	return d
}

// keyOf names an object as a source does, by what the inputs know of its kind.
func keyOf(t rapid.TB, in *Inputs, o source.Object) object.Key {
	key, ok := in.KeyOf(o)
	if !ok {
		t.Fatalf("no table takes %T", o)
	}
	return key
}
