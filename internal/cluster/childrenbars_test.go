package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/test/bars"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// record keeps figures in the file of part 8, where GATEHOUSE_RECORD is set. They are printed at any rate.
func record(t *testing.T, figures ...bars.Figure) {
	t.Helper()
	for _, f := range figures {
		t.Log(f)
	}
	if os.Getenv("GATEHOUSE_RECORD") == "" {
		return
	}
	if err := bars.Record("../../"+bars.File("08"), bars.Here(t.Context()), figures); err != nil {
		t.Error(err)
	}
}

// often is how much of something is measured: more where it is for the record.
func often(t *testing.T, variable string, usually int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usually
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// countWrites counts what replicas write beside Leases and Events.
func (in *installed) countWrites() *atomic.Int64 {
	n := &atomic.Int64{}
	in.asks = func(_ *replica, request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if isWrite(request) {
			n.Add(1)
		}
		return next.RoundTrip(request)
	}
	return n
}

func isWrite(r *http.Request) bool {
	path := r.URL.Path
	return r.Method != http.MethodGet && !strings.Contains(path, "/leases") && !strings.Contains(path, "/events") && !strings.Contains(path, "reviews")
}

// data are the ConfigMaps of blueprints.
func (in *installed) data() map[string]map[string]string {
	in.Helper()
	all := &corev1.ConfigMapList{}
	if err := in.client.List(in.Context(), all, client.InNamespace("team"), client.HasLabels{"gatehouse.dev/blueprint-resource"}); err != nil {
		in.Fatal(err)
	}
	out := map[string]map[string]string{}
	for i := range all.Items {
		out[all.Items[i].Name] = all.Items[i].Data
	}
	return out
}

// TestBlueprintInAnyOrder protects from an order in which manifests must be applied: 20 random ones have the same
// end. A controller that starts then has nothing to write, nor has one of which all is applied again.
func TestBlueprintInAnyOrder(t *testing.T) {
	slow.Skip(t)
	in := install(t)
	writes := in.countWrites()
	manifests := append([]string{
		strings.Replace(twoResources, "names.data.host}", "names.metadata.name}", 1), gatewayWithBlueprint,
		`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayClassValues, metadata: {namespace: gatehouse-system, name: web},
		  spec: {targetRef: {group: gateway.networking.k8s.io, kind: GatewayClass, name: web}, defaults: {zone: class.test}, overrides: {size: large}}}`,
		`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayValues, metadata: {namespace: team, name: edge},
		  spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, defaults: {zone: team.test}, overrides: {size: tiny, owner: team}}}`,
	}, withBlueprint...)
	want := map[string]map[string]string{
		"edge-names":  {"zone": "team.test", "size": "large", "owner": "platform"},
		"edge-record": {"host": "edge-names.team.test"},
	}
	same := func() bool { return fmt.Sprint(in.data()) == fmt.Sprint(want) }
	r := in.start()
	const orders = 20
	seed := rand.New(rand.NewPCG(8, 20))
	good := 0
	for range orders {
		seed.Shuffle(len(manifests), func(i, j int) { manifests[i], manifests[j] = manifests[j], manifests[i] })
		for _, text := range manifests {
			in.apply(text)
			time.Sleep(time.Duration(seed.IntN(100)) * time.Millisecond) // so that the controller sees any part of them
		}
		in.until("the end is the same", same)
		in.until("and ready", func() bool { return in.edgeSaid(condition.GatewayConditionReady).Status == metav1.ConditionTrue })
		good++
		meta := metav1.ObjectMeta{Name: "web"}
		for _, o := range []client.Object{
			&gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge"}}, &v1alpha1.GatewayBlueprint{ObjectMeta: meta},
			&v1alpha1.GatewayParameters{ObjectMeta: metav1.ObjectMeta{Namespace: "gatehouse-system", Name: "web"}},
			&v1alpha1.GatewayClassValues{ObjectMeta: metav1.ObjectMeta{Namespace: "gatehouse-system", Name: "web"}},
			&v1alpha1.GatewayValues{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge"}}, &gwv1.GatewayClass{ObjectMeta: meta},
		} {
			if err := in.client.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		in.until("nothing is left", func() bool { return len(in.data()) == 0 && in.inventories() == 0 && in.class("web") == nil })
	}
	in.apply(manifests...)
	in.until("the end is the same", same)
	quiet(writes)
	before := writes.Load()
	for _, text := range manifests { // as kubectl apply does: what others have said of an object stays
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		if err := in.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("somebody"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
	}
	quiet(writes)
	r.end()
	in.start()
	in.until("it leads", func() bool { return in.edgeSaid(condition.GatewayConditionReady).Status == metav1.ConditionTrue })
	quiet(writes)
	record(t,
		bars.Bar{Name: "manifests of the guide's example in 20 random orders: other end states"}.Measured(float64(orders-good)),
		bars.Bar{Name: "writes of a second apply and a restart"}.Measured(float64(writes.Load()-before)))
	if n := writes.Load() - before; n > 0 {
		t.Errorf("a second apply writes %d times", n)
	}
}

// quiet waits until nothing has been counted for two seconds.
func quiet(n *atomic.Int64) {
	for last := int64(-1); last != n.Load(); time.Sleep(2 * time.Second) {
		last = n.Load()
	}
}

// TestReplacementOfTheKilled kills controllers at each of their writes of a replacement, before it is done and
// after: the next one goes on, nothing is left, and what is read is there and ready at all times.
func TestReplacementOfTheKilled(t *testing.T) {
	slow.Skip(t)
	in := install(t)
	in.apply(withBlueprint...)
	in.apply(withReplacement, gatewayWithBlueprint)
	var at, count atomic.Int64 // the write that is the last one; negative: which isn't done
	killed := make(chan *replica, 1)
	in.asks = func(r *replica, request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !isWrite(request) || !strings.Contains(request.URL.Path, "/configmaps/") {
			return next.RoundTrip(request)
		}
		switch n := count.Add(1); at.Load() {
		case -n:
			r.away.Store(true)
			killed <- r
			return nil, errors.New("the replica is gone")
		case n:
			answer, err := next.RoundTrip(request)
			r.away.Store(true)
			killed <- r
			return answer, err
		}
		return next.RoundTrip(request)
	}
	get := in.configMap
	patch := func(o *corev1.ConfigMap, data string) {
		if err := in.client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"data":`+data+`}`))); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	gaps := 0
	// others do what other controllers would: they make the newest object ready, and take it up.
	others := func(newest string) {
		record := get("edge-record")
		if record == nil {
			return
		}
		if used := get(record.Data["uses"]); record.Data["seen"] != "" && (used == nil || used.Data["ready"] != "yes") && get("edge-record").Data["uses"] == record.Data["uses"] {
			gaps++
		}
		if o := get(newest); o != nil && o.Data["ready"] == "" {
			patch(o, `{"ready":"yes"}`)
		}
		if record.Data["seen"] != record.Data["uses"] {
			patch(record, `{"seen":"`+record.Data["uses"]+`"}`)
		}
	}
	in.start()
	revive := func() { // starts another controller in the place of one that was killed
		select {
		case r := <-killed:
			r.end()
			at.Store(0)
			in.start()
		default:
		}
	}
	settled := func(newest string) func() bool {
		return func() bool {
			revive()
			others(newest)
			all := in.data()
			return len(all) == 2 && all[newest] != nil && all["edge-record"]["uses"] == newest && all["edge-record"]["seen"] == newest
		}
	}
	in.until("the first is made", func() bool { return get("edge-record") != nil })
	first := get("edge-record").Data["uses"]
	in.until("and in use", settled(first))
	runs, kills := 0, 0
	rounds := often(t, "GATEHOUSE_ROUNDS", 1)
	for round := range rounds {
		for step := int64(1); ; step++ {
			past := false // the replacement has no such step
			for _, sign := range []int64{-1, 1} {
				zone := "z" + strconv.Itoa(round) + "-" + strconv.Itoa(runs)
				count.Store(0)
				at.Store(sign * step)
				in.apply(strings.Replace(withReplacement, "zone: a", "zone: "+zone, 1))
				in.until("run "+zone+" comes to its end", settled("edge-cert-"+zone))
				runs++
				in.until("all is ready", func() bool {
					revive() // of one that was killed at its very last write
					return in.edgeSaid(condition.GatewayConditionReady).Status == metav1.ConditionTrue
				})
				past = past || at.Load() != 0
				if !past {
					kills++
				}
				at.Store(0)
			}
			if past {
				break
			}
		}
	}
	left := len(in.data()) - 2
	if err := in.client.Delete(t.Context(), &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge"}}); err != nil {
		t.Fatal(err)
	}
	in.until("all go with the Gateway", func() bool { return len(in.data()) == 0 && in.inventories() == 0 })
	of := fmt.Sprintf("controller killed before and after each write of a replacement, %d runs, %d kills: ", runs, kills)
	record(t, bars.Bar{Name: of + "objects leaked"}.Measured(float64(left)), bars.Bar{Name: of + "moments in which what is read isn't there or ready"}.Measured(float64(gaps)))
	if left != 0 || gaps != 0 {
		t.Errorf("%d objects are left, %d times what is read isn't ready", left, gaps)
	}
}

const eightResources = `
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayBlueprint
metadata: {name: web}
spec:
  values: {defaults: {zone: example.test, edition: "0"}}
  resources:
  - {id: names, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${gateway.metadata.name}-names"}, data: {zone: "${values.zone}"}}}
  - {id: record, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${gateway.metadata.name}-record"}, data: {host: "${names.data.?host.orValue('')}"}}}
  - {id: hosts, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${gateway.metadata.name}-hosts"}, data: {all: "${hostnames.union.join(' ')}"}}}
  - {id: label, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${gateway.metadata.name}-label"}, data: {mark: "${gateway.metadata.?labels[?'mark'].orValue('')}"}}}
  - {id: edition, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${gateway.metadata.name}-edition"}, data: {edition: "EDITION"}}}
  - {id: one, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${gateway.metadata.name}-one"}, data: {of: "${names.metadata.name}"}}}
  - {id: account, template: {apiVersion: v1, kind: ServiceAccount, metadata: {name: "${gateway.metadata.name}-account"}}}
  - {id: budget, template: {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: "${gateway.metadata.name}-budget"}, spec: {maxUnavailable: 1, selector: {matchLabels: {app: "${gateway.metadata.name}"}}}}}
`

// arrivals are the times at which ConfigMaps of blueprints were first seen with some data.
type arrivals struct {
	mu   sync.Mutex
	seen map[string]time.Time // by "name key=value"
}

func (in *installed) watchData() *arrivals {
	in.Helper()
	set, err := kubernetes.NewForConfig(rest.CopyConfig(in.Config))
	if err != nil {
		in.Fatal(err)
	}
	a := &arrivals{seen: map[string]time.Time{}}
	w, err := set.CoreV1().ConfigMaps("team").Watch(in.Context(), metav1.ListOptions{LabelSelector: "gatehouse.dev/blueprint-resource"})
	if err != nil {
		in.Fatal(err)
	}
	in.Cleanup(w.Stop)
	go func() {
		for e := range w.ResultChan() {
			o, ok := e.Object.(*corev1.ConfigMap)
			if !ok || e.Type == watch.Deleted {
				continue
			}
			now := time.Now()
			a.mu.Lock()
			for k, v := range o.Data {
				if key := o.Name + " " + k + "=" + v; a.seen[key].IsZero() {
					a.seen[key] = now
				}
			}
			a.mu.Unlock()
		}
	}()
	return a
}

// since waits until an object has been seen with some data, and returns how long that took.
func (a *arrivals) since(ctx context.Context, began time.Time, key string) (time.Duration, error) {
	for deadline := began.Add(longestWait); ; time.Sleep(200 * time.Microsecond) {
		a.mu.Lock()
		at := a.seen[key]
		a.mu.Unlock()
		if !at.IsZero() {
			return at.Sub(began), nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return 0, fmt.Errorf("%s didn't come", key)
		}
	}
}

// TestBlueprintBars measures how soon children follow with 200 Gateways of 8 children each, what idling costs, and
// what one Gateway with a broken child costs the others.
func TestBlueprintBars(t *testing.T) {
	slow.Skip(t)
	const gateways = 200
	in := install(t)
	writes := in.countWrites()
	blueprintOf := func(edition string) string { return strings.Replace(eightResources, "EDITION", edition, 1) }
	in.apply(withBlueprint...)
	in.apply(blueprintOf("first"))
	name := func(i int) string { return fmt.Sprintf("g%03d", i) }
	gateway := func(i int, mark string) string {
		return `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: ` + name(i) + `, labels: {mark: "` + mark + `"}},
			spec: {gatewayClassName: web, listeners: [{name: http, port: 80, protocol: HTTP}]}}`
	}
	route := func(i int, host string) string {
		return `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: ` + name(i) + `},
			spec: {parentRefs: [{name: ` + name(i) + `}], hostnames: ["` + host + `.example.test"]}}`
	}
	values := func(i int, zone string) string {
		return `{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayValues, metadata: {namespace: team, name: ` + name(i) + `},
			spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: ` + name(i) + `}, defaults: {zone: "` + zone + `"}}}`
	}
	for i := range gateways {
		in.apply(gateway(i, "first"), route(i, "first"), values(i, "first"))
	}
	seen := in.watchData()
	in.start()
	for deadline := time.Now().Add(5 * time.Minute); len(in.data()) < 6*gateways; time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			t.Fatalf("there are %d ConfigMaps", len(in.data()))
		}
	}
	quiet(writes)

	// measure edits one object after the other, and returns what it took until its children followed, sorted.
	edition := 0
	measure := func(n int, edit func(i int, to string), child func(i int, to string) string) []float64 {
		t.Helper()
		var out []float64
		for range n {
			edition++
			i, to := edition*7%gateways, "e"+strconv.Itoa(edition)
			began := time.Now()
			edit(i, to)
			took, err := seen.since(t.Context(), began, child(i, to))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, float64(took.Microseconds())/1000)
			time.Sleep(50 * time.Millisecond)
		}
		slices.Sort(out)
		return out
	}
	at := func(sorted []float64, share float64) float64 {
		return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
	}
	latency := func(what string, sorted []float64) {
		t.Helper()
		record(t, bars.Bar{Name: what + ", p50", Unit: "ms", Limit: 100}.Measured(at(sorted, .5)), bars.Bar{Name: what + ", p99", Unit: "ms", Limit: 300}.Measured(at(sorted, .99)))
	}
	byValues := func() []float64 {
		return measure(100, func(i int, to string) { in.apply(values(i, to)) }, func(i int, to string) string { return name(i) + "-names zone=" + to })
	}
	const with = "with 200 Gateways of 8 children, until the child follows"
	before := byValues()
	latency("values edited "+with, before)
	latency("Gateway edited "+with, measure(100, func(i int, to string) { in.apply(gateway(i, to)) }, func(i int, to string) string { return name(i) + "-label mark=" + to }))
	latency("route edited "+with, measure(100, func(i int, to string) { in.apply(route(i, to)) }, func(i int, to string) string { return name(i) + "-hosts all=" + to + ".example.test" }))
	latency("child edited by somebody "+with, measure(100, func(i int, to string) {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name(i) + "-names"}}
		if err := in.client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"host":"`+to+`"}}`))); err != nil {
			t.Fatal(err)
		}
	}, func(i int, to string) string { return name(i) + "-record host=" + to }))
	var all []float64
	for range 3 {
		edition++
		to := "e" + strconv.Itoa(edition)
		began := time.Now()
		in.apply(blueprintOf(to))
		for i := range gateways {
			took, err := seen.since(t.Context(), began, name(i)+"-edition edition="+to)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, float64(took.Microseconds())/1000)
		}
		quiet(writes)
	}
	slices.Sort(all)
	latency("blueprint edited "+with+" in each Gateway", all)
	t.Logf("the API server alone takes %v for as many writes by four clients", in.writesAlone(gateways))

	// A broken child, of another Gateway than those measured.
	in.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team, name: `+name(gateways)+`-one}}`, gateway(gateways, "first"))
	quiet(writes)
	after := byValues()
	latency("values edited beside a Gateway with a broken child", after)
	record(t, bars.Bar{Name: "values edited beside a Gateway with a broken child over without, p50", Limit: 1.1}.Measured(at(after, .5)/at(before, .5)))

	minutes := often(t, "GATEHOUSE_IDLE_MINUTES", 1)
	quiet(writes)
	written, used := writes.Load(), cpu(t)
	time.Sleep(time.Duration(minutes) * time.Minute)
	of := fmt.Sprintf("%d idle minutes with 200 Gateways of 8 children, ", minutes)
	cores := (cpu(t) - used).Seconds() / float64(minutes*60)
	record(t, bars.Bar{Name: of + "writes"}.Measured(float64(writes.Load()-written)), bars.Bar{Name: of + "CPU", Unit: "cores", Limit: 0.02}.Measured(cores))
	if writes.Load() > written {
		t.Errorf("an idle controller writes %d times", writes.Load()-written)
	}
}

// writesAlone is how long it takes to apply a ConfigMap for each of some Gateways, with a controller that has nothing to do with
// them.
func (in *installed) writesAlone(n int) time.Duration {
	in.Helper()
	var group sync.WaitGroup
	var next atomic.Int32
	write := func(value string) {
		next.Store(0)
		for range 4 {
			group.Go(func() {
				for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
					o := applycorev1.ConfigMap(fmt.Sprint("alone-", i), "team").WithData(map[string]string{"edition": value})
					if err := in.client.Apply(in.Context(), o, client.FieldOwner("alone")); err != nil {
						in.Error(err)
					}
				}
			})
		}
		group.Wait()
	}
	write("first")
	began := time.Now()
	write("second")
	return time.Since(began)
}

// cpu is the time that this process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
