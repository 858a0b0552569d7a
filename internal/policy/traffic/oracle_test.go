package traffic

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// samples are what policies may say of each setting: two things that can be done, and a mistake.
var samples = map[string][3]string{
	"backend.circuitBreaker":           {"{maxRequests: 1}", "{maxConnections: 2}", "{}"},
	"backend.clusters":                 {"{order: [{name: east}, {name: west, priority: 1}]}", "{equal: true}", "{order: [{name: east}, {name: east}]}"},
	"backend.connectTimeout":           {"1s", "2s", "'1'"},
	"backend.connections":              {"{maxRequests: 1}", "{idleTimeout: 2s}", "{}"},
	"backend.healthCheck":              {"{type: TCP}", "{disabled: true}", "{type: Moon}"},
	"backend.loadBalancing":            {"{type: Random}", "{type: ConsistentHash, consistentHash: {type: SourceIP}}", "{type: ConsistentHash}"},
	"backend.outlierDetection":         {"{}", "{disabled: true}", "{interval: '1'}"},
	"backend.retryBudget":              {"{percent: 1}", "{minRetries: 2}", "{percent: 500}"},
	"backend.routingType":              {"Service", "Endpoint", "Moon"},
	"request.admissionControl":         {"{}", "{disabled: true}", "{successRate: 500}"},
	"request.bandwidth":                {"1Mi", "Unlimited", "5"},
	"request.buffering":                {"{}", "{disabled: true}", "{maxSize: 1Gi}"},
	"request.faults":                   {"{abort: {}}", "{disabled: true}", "{}"},
	"request.idleTimeout":              {"1s", "0s", "'1'"},
	"request.maxBodySize":              {"1Mi", "Unlimited", "0"},
	"request.retry":                    {"{}", "{attempts: 0}", "{codes: [200, 1]}"},
	"request.timeout":                  {"1s", "0s", "'1'"},
	"response.bandwidth":               {"1Mi", "Unlimited", "5"},
	"response.compression":             {"{}", "{disabled: true}", "{algorithms: [{type: Lzma}]}"},
	"response.errorPages":              {"{pages: [{statuses: ['404'], body: a}]}", "{disabled: true}", "{}"},
	"response.headers":                 {"{remove: [a]}", "{disabled: true}", "{}"},
	"response.securityHeaders":         {"{}", "{disabled: true}", "{frameOptions: Moon}"},
	"response.strictTransportSecurity": {"{}", "{disabled: true}", "{preload: true}"},
}

// sample is one of them as it is read alone.
type sample struct {
	text  []byte // JSON of settings that have nothing else
	means ir.Traffic
	wrong bool
}

func readSamples(t *testing.T) map[string][]sample {
	t.Helper()
	out := map[string][]sample{}
	for _, name := range Settings() {
		if len(samples[name]) == 0 || samples[name][0] == "" {
			t.Fatalf("there are no samples of %s", name)
		}
		group, field, _ := strings.Cut(name, ".")
		for i, text := range samples[name] {
			spec := "{" + group + ": {" + field + ": " + text + "}}"
			p := parse(t, spec)
			s := sample{wrong: len(p.Asks) == 0}
			if s.wrong != (i == 2) {
				t.Fatalf("%s: %v", spec, p.Refused)
			}
			if !s.wrong {
				s.means = p.Asks[0].Value.Traffic
			}
			var err error
			if s.text, err = yaml.YAMLToJSON([]byte(spec)); err != nil {
				t.Fatal(err)
			}
			out[name] = append(out[name], s)
		}
	}
	return out
}

// drawn is a policy on a path, as the oracle knows it.
type drawn struct {
	strategy policy.Strategy
	says     map[string]int // which sample of each setting, without mistakes
}

// expected answers for a path what GEP-713 says of a setting: -1 for nothing, or which sample.
func expected(path []drawn, name string) int {
	usable := func(d drawn) bool { return len(d.says) > 0 }
	out, overridden := -1, false
	for i, d := range path {
		above := slices.ContainsFunc(path[:i], func(o drawn) bool { return usable(o) && o.strategy == policy.AtomicOverrides })
		if above || d.strategy == policy.AtomicDefaults && slices.ContainsFunc(path[i+1:], usable) {
			continue
		}
		if which, says := d.says[name]; says && !overridden {
			out, overridden = which, d.strategy.Overrides()
		}
	}
	return out
}

// TestSettingsAgainstOracle protects that what policies say together on random paths from a Gateway to a Service is
// what an oracle says, setting by setting.
func TestSettingsAgainstOracle(t *testing.T) { againstOracle(t, 1000) }

// TestManySettingsAgainstOracle is the same of 100,000 paths.
func TestManySettingsAgainstOracle(t *testing.T) {
	slow.Skip(t)
	againstOracle(t, 100_000)
}

func againstOracle(t *testing.T, paths int) {
	t.Helper()
	all, names := readSamples(t), Settings()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	differences, settings := 0, 0
	for range paths {
		var path []policy.Placed[Setting]
		var oracle []drawn
		for range random.IntN(6) {
			o, d := draw(t, random, all, names)
			p := Read(object.Name{Namespace: "ns", Name: fmt.Sprint("p", len(path))}, o, nil, nil)
			path = append(path, policy.Placed[Setting]{Said: policy.Said[policy.Rules[Setting]]{Policy: p.Name, Strategy: p.Strategy, Asks: p.Asks}})
			oracle = append(oracle, d)
		}
		want := &ir.Traffic{}
		for _, name := range names {
			if which := expected(oracle, name); which >= 0 {
				settings++
				take(want, &all[name][which].means)
			}
		}
		got := InForce(policy.Combine(path))
		if got == nil {
			got = &ir.Traffic{}
		}
		if !got.Equal(want) {
			if differences++; differences < 5 {
				said, _ := json.Marshal(got)
				ought, _ := json.Marshal(want)
				t.Errorf("%+v: %s, want %s", oracle, said, ought)
			}
		}
	}
	t.Logf("%d paths, %d settings in force, %d differences", paths, settings, differences)
}

// draw makes a policy, with how the oracle knows it.
func draw(t *testing.T, random *rand.Rand, all map[string][]sample, names []string) (*v1alpha1.TrafficPolicy, drawn) {
	t.Helper()
	d := drawn{policy.Strategy(random.IntN(4)), map[string]int{}} //nolint:gosec // one of four
	var says v1alpha1.TrafficSettings
	for _, name := range names {
		which := random.IntN(8)
		if which > 2 {
			continue
		}
		s := &all[name][which]
		if err := json.Unmarshal(s.text, &says); err != nil {
			t.Fatal(err)
		}
		if !s.wrong {
			d.says[name] = which
		}
	}
	o := &v1alpha1.TrafficPolicy{}
	layer := &v1alpha1.TrafficLayer{TrafficSettings: says}
	if d.strategy == policy.MergeDefaults || d.strategy == policy.MergeOverrides {
		layer.Strategy = v1alpha1.Merge
	}
	switch {
	case d.strategy.Overrides():
		o.Spec.Overrides = layer
	case d.strategy == policy.AtomicDefaults && random.IntN(2) == 0:
		o.Spec.TrafficSettings = says
	default:
		o.Spec.Defaults = layer
	}
	return o, d
}

// take adds what one setting means.
func take(to, from *ir.Traffic) {
	into, of := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range of.NumField() {
		if f := of.Field(i); !f.IsZero() {
			into.Field(i).Set(f)
		}
	}
}
