package golden

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
	"github.com/gatehouse-dev/gatehouse/internal/standalone"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

var (
	mutations = flag.Int("mutations", 1000, "how many mutated objects go through the pipelines of TestMutations, in all")
	seed      = flag.Uint64("seed", 1, "what the mutations of TestMutations follow from; 0 is another one each time")
	every     = flag.Int("compare", 0, "after how many mutations a pipeline is compared with a fresh one; 0 is five times in each mode")
)

// These bound what a pipeline may have kept of the objects that were there: twice what a
// fresh one needs for those that are, and what does not depend on their number, such as
// what is known of regular expressions.
const (
	maxHeapRatio = 2
	heapSlack    = 48 << 20
)

// maxLive is how many objects are there at a time.
const maxLive = 800

// TestMutations feeds the golden files' objects, mutated, through the validation of
// sources into running pipelines. Whatever objects say: no table's function panics, no
// more memory stays taken than the objects that are there need, statuses are such as the
// API server takes, and in the end configuration and statuses are those of a fresh
// pipeline that is given the same objects at once.
//
// To repeat a failure: go test ./test/golden -run TestMutations/MODE -seed SEED, with
// -compare 1 to find the object.
func TestMutations(t *testing.T) {
	from := *seed
	if from == 0 {
		from = rand.Uint64()
	}
	seeds := mutationSeeds(t)
	for mode, start := range map[string]func(*testing.T) *pipeline.Pipeline{
		"files":   func(t *testing.T) *pipeline.Pipeline { return empty(t) },
		"cluster": func(*testing.T) *pipeline.Pipeline { return inCluster() },
	} {
		t.Run(mode, func(t *testing.T) {
			t.Logf("seed %d", from)
			m := newMutations(t, from, seeds, start)
			step := *every
			if step == 0 {
				step = max(*mutations/10, 1)
			}
			for m.fed < *mutations/2 && !t.Failed() {
				m.step()
				if m.fed/step > m.compared {
					m.compared = m.fed / step
					m.compare()
				}
			}
			m.compare()
			m.report()
		})
	}
}

// empty returns a pipeline of standalone mode without objects.
func empty(t *testing.T) *pipeline.Pipeline {
	t.Helper()
	p, err := standalone.Evaluate(t.Context(), standalone.EvaluateOptions{Paths: []string{"-"}, Stdin: strings.NewReader(""), Experimental: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// inCluster returns a pipeline as the controller has it.
func inCluster() *pipeline.Pipeline {
	options := pipeline.Provisioned(pipeline.ControllerName, "/etc/ssl/certs/ca-certificates.crt", nil)
	options.Topology.Experimental = true
	return pipeline.New(options)
}

// mutationSeeds returns the objects of all golden files, and a class for a cluster.
func mutationSeeds(t *testing.T) (out []content) {
	t.Helper()
	for _, path := range paths(t) {
		f := read(t, path)
		f.options.Experimental = true
		for _, o := range f.load(t).Set {
			c, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, c)
		}
	}
	if len(out) < 200 {
		t.Fatalf("there are only %d objects", len(out))
	}
	return append(out, content{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": content{"name": pipeline.StandaloneClass},
		"spec": content{"controllerName": pipeline.ControllerName},
	})
}

// mutating is a pipeline with its objects.
type mutating struct {
	*testing.T
	start     func(*testing.T) *pipeline.Pipeline
	validator *schema.Validator
	mutator   *mutator
	random    *rand.Rand

	p    *pipeline.Pipeline
	sent resources // to proxies
	live map[object.Key]source.Object
	keys []object.Key // of live
	heap uint64       // before there was anything

	fed, accepted, removed, compared int
	uids                             int
	slowest                          time.Duration
	slowestOf                        string
}

func newMutations(t *testing.T, seed uint64, seeds []content, start func(*testing.T) *pipeline.Pipeline) *mutating {
	t.Helper()
	validator, err := schema.New(kind.All, true)
	if err != nil {
		t.Fatal(err)
	}
	m := &mutating{
		T: t, start: start, validator: validator, random: rand.New(rand.NewPCG(seed, 0)),
		sent: resources{}, live: map[object.Key]source.Object{},
	}
	m.mutator = newMutator(m.random, seeds, m.anybody)
	var b source.Batch
	for _, s := range seeds { // also so that all schemas are compiled
		o := m.decode(copied(s).(content))
		if o == nil || m.live[source.KeyOf(o)] != nil {
			continue
		}
		m.admit(o)
		b.Set = append(b.Set, o)
	}
	m.heap = heap()
	m.p = start(t)
	m.apply(b)
	return m
}

// anybody is the name of an object that is there.
func (m *mutating) anybody() object.Key {
	if len(m.keys) == 0 || m.random.IntN(10) == 0 {
		return object.Key{Kind: kind.Service, Name: object.Name{Namespace: "default", Name: "nobody"}}
	}
	return m.keys[m.random.IntN(len(m.keys))]
}

// step feeds one batch, as a save of some files brings it.
func (m *mutating) step() {
	var b source.Batch
	touched := map[object.Key]bool{}
	for n := 1 + m.random.IntN(8); n > 0; n-- {
		m.fed++
		if len(m.keys) > maxLive || len(m.keys) > 0 && m.random.IntN(12) == 0 {
			if key := m.keys[m.random.IntN(len(m.keys))]; !touched[key] {
				touched[key] = true
				b.Deleted = append(b.Deleted, key)
				m.forget(key)
			}
			continue
		}
		o := m.object()
		if o == nil || touched[source.KeyOf(o)] {
			continue
		}
		touched[source.KeyOf(o)] = true
		m.accepted++
		m.admit(o)
		b.Set = append(b.Set, o)
	}
	if !b.Empty() {
		m.apply(b)
	}
}

// object returns a mutated object; nil for one that is refused.
func (m *mutating) object() source.Object {
	from := m.mutator.seeds[m.random.IntN(len(m.mutator.seeds))]
	if len(m.keys) > 0 && m.random.IntN(2) == 0 {
		c, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(m.live[m.keys[m.random.IntN(len(m.keys))]].DeepCopyObject())
		if err != nil {
			m.Fatal(err)
		}
		from = c
	}
	return m.decode(m.mutator.mutated(from))
}

// decode does what sources do with an object.
func (m *mutating) decode(c content) source.Object {
	m.Helper()
	text := printedContent(c)
	defer func() {
		if err := recover(); err != nil {
			m.Fatalf("the validation panics: %v\n%s", err, text)
		}
	}()
	id, err := m.validator.Identify(c)
	if err != nil {
		m.refused(source.Problem{Reason: source.Invalid, Message: err.Error()}, text)
		return nil
	}
	o, errs := m.validator.Decode(id, c)
	for _, err := range errs {
		m.refused(source.Problem{Key: id.Key, Field: err.Field, Reason: source.Invalid, Message: schema.Message(err)}, text)
	}
	if len(errs) > 0 {
		return nil
	}
	return o
}

func (m *mutating) refused(p source.Problem, text string) {
	m.Helper()
	messagetest.Check(m, p.Error(), 8*len(text)+4000)
}

// admit gives an object what an API server adds.
func (m *mutating) admit(o source.Object) {
	key := source.KeyOf(o)
	if was, ok := m.live[key]; ok {
		o.SetUID(was.GetUID())
		o.SetCreationTimestamp(was.GetCreationTimestamp())
		o.SetGeneration(was.GetGeneration() + 1)
	} else {
		m.uids++
		o.SetUID(types.UID(fmt.Sprint("uid-", m.uids)))
		o.SetCreationTimestamp(metav1.Unix(int64(1_700_000_000+m.uids/3), 0)) // some are equally old
		o.SetGeneration(1)
		m.keys = append(m.keys, key)
	}
	m.live[key] = o
}

func (m *mutating) forget(key object.Key) {
	m.removed++
	delete(m.live, key)
	i := slices.Index(m.keys, key)
	m.keys[i] = m.keys[len(m.keys)-1]
	m.keys = m.keys[:len(m.keys)-1]
}

// apply runs a transaction.
func (m *mutating) apply(b source.Batch) {
	m.Helper()
	pipeline.Prepare(b)
	began := time.Now()
	c := m.p.Apply(b)
	if took := time.Since(began); took > m.slowest {
		m.slowest, m.slowestOf = took, describe(b)
	}
	for _, failure := range c.Failures {
		m.Errorf("%v\n%s\nafter\n%s", failure, failure.Stack, describe(b))
	}
	m.sent.take(m.p.Updates(c))
}

// compare holds the pipeline against a fresh one with the same objects.
func (m *mutating) compare() {
	m.Helper()
	m.apply(source.Batch{}) // what is kept of settings lags behind
	used := heap()
	fresh := m.start(m.T)
	kept := map[object.Name]*parameters.Kept{}
	m.p.Engine.View(func(c *flow.Ctx) {
		for name, k := range flow.All(c, m.p.Inputs.Kept) {
			kept[name] = &k
		}
	})
	fresh.Seed(kept)
	pairs := map[object.Name]topology.KeptCertificate{}
	m.p.Engine.View(func(c *flow.Ctx) { pairs = maps.Collect(flow.All(c, m.p.Inputs.KeptCertificates)) })
	fresh.Update(func(tx *flow.Tx) {
		for name, pair := range pairs {
			fresh.Inputs.KeptCertificates.Set(tx, name, pair)
		}
	})
	var b source.Batch
	for _, key := range m.keys {
		b.Set = append(b.Set, m.live[key].DeepCopyObject().(source.Object))
	}
	sent := resources{}
	for _, batch := range []source.Batch{b, {}} {
		c := fresh.Apply(batch)
		for _, failure := range c.Failures {
			m.Errorf("%v\n%s", failure, failure.Stack)
		}
		sent.take(fresh.Updates(c))
	}
	b = source.Batch{}
	both := heap()
	old, young := int64(used)-int64(m.heap), int64(both)-int64(used)
	m.Logf("after %d objects, of which %d are there: %d KiB of heap, %d KiB for a fresh pipeline", m.fed, len(m.keys), old>>10, young>>10)
	if old > maxHeapRatio*young+heapSlack {
		m.Errorf("after %d objects %d bytes are taken; a fresh pipeline with the same objects takes %d", m.fed, old, young)
	}
	if diff := cmp.Diff(sent, m.sent); diff != "" {
		m.Errorf("after %d objects proxies have something else than they get of a fresh pipeline (-fresh +running):\n%.4000s", m.fed, diff)
	}
	if diff := cmp.Diff(printedAll(m.T, fresh), printedAll(m.T, m.p)); diff != "" {
		m.Errorf("after %d objects, it is not as with a fresh pipeline (-fresh +running):\n%.8000s", m.fed, diff)
	}
	checkStatuses(m.T, m.p)
}

// report says how much of the work was none, and fails where most of it was.
func (m *mutating) report() {
	m.Logf("%d objects: %d accepted, %d removed; the slowest transaction took %s:\n%.600s", m.fed, m.accepted, m.removed, m.slowest, m.slowestOf)
	if m.accepted < m.fed/4 {
		m.Errorf("only %d of %d objects were accepted: the mutations are too wild to say anything", m.accepted, m.fed)
	}
}

// resources are what proxies have been sent: the version of each, by Gateway.
type resources map[object.Name]map[string]string

func (r resources) take(updates []xds.Update) {
	for _, u := range updates {
		if r[u.Gateway] == nil {
			r[u.Gateway] = map[string]string{}
		}
		for _, ref := range u.Remove {
			delete(r[u.Gateway], fmt.Sprint(ref))
		}
		for _, res := range u.Set {
			r[u.Gateway][fmt.Sprint(xds.Ref{Type: res.Type, Name: res.Name})] = res.Version
		}
		if u.Gone || len(r[u.Gateway]) == 0 {
			delete(r, u.Gateway)
		}
	}
}

// heap is what is in use once all garbage is gone, also what finalizers let go.
func heap() uint64 {
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// printedAll prints all stages, and what there is to say of objects without a status.
func printedAll(t *testing.T, p *pipeline.Pipeline) string {
	t.Helper()
	var out strings.Builder
	for _, problem := range view.Of(p).Problems {
		fmt.Fprintln(&out, problem.Error())
	}
	out.Write(printed(t, p, view.StageAll))
	return out.String()
}

// What the API server holds a condition against.
var (
	conditionType   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
	conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

// checkStatuses checks that the API server would take all statuses.
func checkStatuses(t *testing.T, p *pipeline.Pipeline) {
	t.Helper()
	for _, item := range stage[[]map[string]any](t, p, view.StageStatus) {
		walk(item, func(at map[string]any) {
			list, _ := at["conditions"].([]any)
			if len(list) > 8 {
				t.Errorf("%v %v has %d conditions", item["kind"], item["metadata"], len(list))
			}
			for _, c := range list {
				c := c.(map[string]any)
				name, _ := c["type"].(string)
				reason, _ := c["reason"].(string)
				message, _ := c["message"].(string)
				if !conditionType.MatchString(name) || len(name) > 316 || !conditionReason.MatchString(reason) || len(reason) > 1024 || len(message) > messagetest.Most {
					t.Errorf("%v %v has the condition %.300v", item["kind"], item["metadata"], c)
				}
				if message != "" {
					messagetest.Check(t, message, messagetest.Most)
				}
			}
		})
	}
}

// describe prints a batch, for a person who looks for its fault.
func describe(b source.Batch) string {
	var out strings.Builder
	for _, key := range b.Deleted {
		fmt.Fprintf(&out, "# %s is removed\n", key)
	}
	for _, o := range b.Set {
		c, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&out, "---\n%s", printedContent(c))
	}
	return out.String()
}

func printedContent(c content) string {
	text, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Sprint(c)
	}
	return string(text)
}
