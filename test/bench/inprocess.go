package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// inProcess measures the pipeline alone, from validated objects to the bytes
// being ready to be sent.
type inProcess struct {
	log     *slog.Logger
	report  *report
	changes int    // of each shape
	profile string // directory for profiles; empty for none

	validator *schema.Validator
	template  objects
	gateway   source.Object
}

func newInProcess(log *slog.Logger, r *report, changes int, profile string) (*inProcess, error) {
	b := &inProcess{log: log, report: r, changes: changes, profile: profile}
	var err error
	if b.validator, err = schema.New(kind.All, false); err != nil {
		return nil, err
	}
	if b.template, err = decodeEntry(b.validator, entry{port: 3000}); err != nil {
		return nil, err
	}
	docs, err := documents([]byte(gatewayManifest))
	if err != nil {
		return nil, err
	}
	b.gateway, err = decode(b.validator, docs[0])
	return b, err
}

// measureInProcess measures all numbers of routes in this process, or, where more turns than one are
// wanted, in a process for each, and reports the median of each figure. Where a pipeline's objects come
// to lie in memory makes a tenth of a change's cost, and a process has them there to its end.
func measureInProcess(ctx context.Context, o options, log *slog.Logger, r *report) error {
	if o.turns > 1 {
		return inTurns(ctx, o, log, r)
	}
	b, err := newInProcess(log, r, o.changes, o.profile)
	if err != nil {
		return err
	}
	for _, n := range o.routes {
		if err := b.run(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// inTurns measures in processes, one after the other.
func inTurns(ctx context.Context, o options, log *slog.Logger, r *report) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gatehouse-bench-turns-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "report.json")
	turns := make([]*report, o.turns)
	for i := range turns {
		log.Info("in process", "turn", i+1)
		turn := exec.CommandContext(ctx, self, "-turns=1", "-only="+inProcessHalf, "-bars=report", "-out="+out,
			"-routes="+o.sizes(), "-changes="+strconv.Itoa(o.changes))
		if text, err := turn.CombinedOutput(); err != nil {
			return fmt.Errorf("turn %d: %w\n%s", i+1, err, text)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			return err
		}
		turns[i] = &report{}
		if err := json.Unmarshal(text, turns[i]); err != nil {
			return fmt.Errorf("turn %d: %w", i+1, err)
		}
	}
	r.medians(turns)
	return nil
}

// pipelineUnderTest is a pipeline with the objects that it was given.
type pipelineUnderTest struct {
	*pipeline.Pipeline
	objects []objects
	edits   int
}

// run measures all shapes at one number of routes.
func (b *inProcess) run(ctx context.Context, routes int) error {
	p, err := b.build(routes)
	if err != nil {
		return err
	}
	gc, err := measureCollection()
	if err != nil {
		return err
	}
	measured := map[string][]cost{}
	order := []string{routeEdit, endpointChange, routeAdd, routeDelete} // deletions take back what additions brought
	for round := range rounds {
		b.log.Debug("in process", "routes", routes, "round", round+1)
		for _, shape := range order {
			if err := ctx.Err(); err != nil {
				return err
			}
			c, err := b.round(p, routes, shape)
			if err != nil {
				return fmt.Errorf("%s at %d routes: %w", shape, routes, err)
			}
			measured[shape] = append(measured[shape], c)
		}
	}
	for _, shape := range order {
		c := median(measured[shape])
		n := float64(b.changes)
		alloc := float64(c.alloc) / n
		share := gc.of(alloc)
		b.report.add(shape, routes, "cpu_ms", milliseconds(c.cpu)/n+milliseconds(share))
		b.report.add(shape, routes, "gc_ms", milliseconds(share))
		b.report.add(shape, routes, "alloc_kb", alloc/1000)
		if err := b.join(p, routes, shape); err != nil {
			return fmt.Errorf("%s at %d routes: %w", shape, routes, err)
		}
	}
	return b.decoding(routes)
}

// rounds is how often every shape is measured; the median is reported, since a
// neighbour on the machine can spoil any single one.
const rounds = 5

// median returns the cost with the middle CPU time.
func median(c []cost) cost {
	slices.SortFunc(c, func(a, b cost) int { return cmp.Compare(a.cpu, b.cpu) })
	return c[len(c)/2]
}

// build makes a pipeline of so many routes and measures what it holds and what
// it took.
func (b *inProcess) build(routes int) (*pipelineUnderTest, error) {
	before := liveHeap()
	p := newPipeline(0)
	entries := make([]entry, routes)
	for i := range entries {
		entries[i] = entry{index: i, port: 3000}
	}
	batch := b.inventory(p, entries)
	var updates []xds.Update
	built, err := spend(func() (err error) { updates, err = p.change(batch); return err })
	if err != nil {
		return nil, err
	}
	var want [envoy.NumTypes]int
	for _, u := range updates {
		for _, r := range u.Set {
			want[r.Type]++
		}
	}
	if want[envoy.Clusters] != routes || want[envoy.Endpoints] != routes || want[envoy.Listeners] != 1 || want[envoy.Routes] == 0 {
		return nil, fmt.Errorf("the pipeline made %d clusters, %d endpoint sets, %d listeners and %d tables of %d routes",
			want[envoy.Clusters], want[envoy.Endpoints], want[envoy.Listeners], want[envoy.Routes], routes)
	}
	batch, updates = source.Batch{}, nil
	heap := liveHeap()
	if err := b.writeProfile("heap", pipelineBuild, routes); err != nil {
		return nil, err
	}
	b.report.add(pipelineBuild, routes, "cpu_ms", milliseconds(built.cpu))
	b.report.add(pipelineBuild, routes, "heap_kib_per_route", float64(heap-before)/1024/float64(routes))
	return p, nil
}

// newPipeline returns one as `gatehouse run` uses it.
func newPipeline(portOffset int) *pipelineUnderTest {
	address := []string{"127.0.0.1"}
	return &pipelineUnderTest{Pipeline: pipeline.New(pipeline.Options{
		Addresses: address, NoProxies: true,
		Topology: topology.Options{
			ControllerName: pipeline.ControllerName, ImplicitClass: pipeline.StandaloneClass,
			SharedHost: true, DefaultAddresses: address, PortOffset: portOffset,
		},
	})}
}

// inventory returns the batch that gives a pipeline the Gateway and all entries.
func (b *inProcess) inventory(p *pipelineUnderTest, entries []entry) source.Batch {
	batch := source.Batch{Set: []source.Object{b.gateway}}
	p.objects = make([]objects, 0, len(entries))
	for _, e := range entries {
		o := b.template.as(e)
		p.objects = append(p.objects, o)
		batch.Set = append(batch.Set, o.all()...)
	}
	return batch
}

// change applies a batch and returns what proxies must hear of it.
func (p *pipelineUnderTest) change(b source.Batch) ([]xds.Update, error) {
	c := p.Apply(b)
	if len(c.Failures) > 0 {
		return nil, c.Failures[0]
	}
	return p.Updates(c), nil
}

// round measures changes of one shape, each a transaction of its own.
func (b *inProcess) round(p *pipelineUnderTest, routes int, shape string) (cost, error) {
	const warmUp = 20
	batches := b.batches(p, shape, warmUp+b.changes)
	for _, batch := range batches[:warmUp] {
		if _, err := p.change(batch); err != nil {
			return cost{}, err
		}
	}
	stop, err := b.startProfile(shape, routes)
	if err != nil {
		return cost{}, err
	}
	total, err := spend(func() error {
		for i, batch := range batches[warmUp:] {
			updates, err := p.change(batch)
			if err != nil {
				return err
			}
			if len(updates) != 1 {
				return fmt.Errorf("change %d reached %d Gateways, not 1", i, len(updates))
			}
		}
		return nil
	})
	return total, errors.Join(err, stop())
}

// join measures the copy of a table's bytes, and counts what would be sent.
func (b *inProcess) join(p *pipelineUnderTest, routes int, shape string) error {
	const joins = 50
	batches := b.batches(p, shape, joins)
	var total cost
	bytes, tables := 0, 0
	for _, batch := range batches {
		updates, err := p.change(batch)
		if err != nil {
			return err
		}
		joined, err := spend(func() error {
			for _, u := range updates {
				for _, r := range u.Set {
					bytes += len(r.Body())
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		total.add(joined)
		if err := expect(shape, updates); err != nil {
			return err
		}
		for _, u := range updates {
			for _, r := range u.Set {
				bytes += len(r.Name) + len(r.Version)
				if r.Type == envoy.Routes || r.Type == envoy.Listeners {
					tables++
				}
			}
			for _, r := range u.Remove {
				bytes += len(r.Name)
			}
		}
	}
	n := float64(len(batches))
	b.report.add(shape, routes, "join_cpu_ms", milliseconds(total.cpu)/n)
	b.report.add(shape, routes, "join_kb", float64(total.alloc)/n/1000)
	b.report.add(shape, routes, "xds_bytes", float64(bytes)/n)
	if shape == endpointChange {
		b.report.add(shape, routes, "tables_touched", float64(tables))
	}
	return nil
}

// expect returns an error when proxies would not hear what a change must bring
// about: figures of work not done are worth nothing.
func expect(shape string, updates []xds.Update) error {
	set, removed := map[envoy.Type]bool{}, map[envoy.Type]bool{}
	for _, u := range updates {
		for _, r := range u.Set {
			set[r.Type] = true
		}
		for _, r := range u.Remove {
			removed[r.Type] = true
		}
	}
	missing := false
	switch shape {
	case routeEdit:
		missing = !set[envoy.Routes]
	case routeAdd:
		missing = !set[envoy.Routes] || !set[envoy.Clusters] || !set[envoy.Endpoints]
	case endpointChange:
		missing = !set[envoy.Endpoints]
	case routeDelete:
		missing = !set[envoy.Routes] || !removed[envoy.Clusters] || !removed[envoy.Endpoints]
	}
	if missing {
		return fmt.Errorf("a change sets only %v and removes only %v", set, removed)
	}
	return nil
}

// batches prepares changes, spread over the routes, and keeps book of what the
// pipeline will hold. Deletions take back what additions brought.
func (b *inProcess) batches(p *pipelineUnderTest, shape string, n int) []source.Batch {
	out := make([]source.Batch, 0, n)
	routes := len(p.objects)
	for i := range n {
		at := i * 7919 % routes // a prime: neighbours in time are not neighbours in order
		switch shape {
		case routeEdit:
			p.edits++ // never the same twice: equal objects change nothing
			o := p.objects[at].route.DeepCopy()
			o.Spec.Rules[0].Filters[0].ResponseHeaderModifier.Set[0].Value = strconv.Itoa(p.edits)
			p.objects[at].route = o
			out = append(out, source.Batch{Set: []source.Object{o}})
		case endpointChange:
			o := p.objects[at].slice.DeepCopy()
			port := *o.Ports[0].Port + 1
			o.Ports[0].Port = &port
			p.objects[at].slice = o
			out = append(out, source.Batch{Set: []source.Object{o}})
		case routeAdd:
			o := b.template.as(entry{index: len(p.objects), port: 3000})
			p.objects = append(p.objects, o)
			out = append(out, source.Batch{Set: o.all()})
		case routeDelete:
			last := len(p.objects) - 1
			out = append(out, source.Batch{Deleted: p.objects[last].keys()})
			p.objects = p.objects[:last]
		}
	}
	return out
}

// decoding measures what an edited route costs before the pipeline sees it: the
// API server's own decoding, defaulting and validation. It does not depend on
// the number of routes, and stands in the report beside that which may not.
func (b *inProcess) decoding(routes int) error {
	const n = 100
	docs := make([]document, n)
	for i := range docs {
		parsed, err := documents(entry{index: i, port: 3000}.manifest())
		if err != nil {
			return err
		}
		docs[i] = parsed[0]
	}
	total, err := spend(func() error {
		for _, doc := range docs {
			if _, err := decode(b.validator, doc); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.report.add(routeEdit, routes, "decode_cpu_ms", milliseconds(total.cpu)/n)
	b.report.add(routeEdit, routes, "decode_alloc_kb", float64(total.alloc)/n/1000)
	return nil
}

// startProfile profiles the CPU until stop, which also writes what was allocated.
func (b *inProcess) startProfile(shape string, routes int) (stop func() error, err error) {
	if b.profile == "" {
		return func() error { return nil }, nil
	}
	if err := b.writeProfile("allocs", shape+"-before", routes); err != nil {
		return nil, err
	}
	f, err := os.Create(b.profilePath("cpu", shape, routes))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			return err
		}
		return b.writeProfile("allocs", shape, routes)
	}, nil
}

func (b *inProcess) writeProfile(kind, shape string, routes int) error {
	if b.profile == "" {
		return nil
	}
	f, err := os.Create(b.profilePath(kind, shape, routes))
	if err != nil {
		return err
	}
	runtime.GC() // which is when profiles of memory are brought up to date
	if err := pprof.Lookup(kind).WriteTo(f, 0); err != nil {
		return err
	}
	return f.Close()
}

func (b *inProcess) profilePath(kind, shape string, routes int) string {
	return filepath.Join(b.profile, fmt.Sprintf("%s-%d.%s.pprof", shape, routes, kind))
}
