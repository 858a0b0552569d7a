package golden

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	sourcefile "github.com/gatehouse-dev/gatehouse/internal/source/file"
	"github.com/gatehouse-dev/gatehouse/internal/standalone"
)

// The sections that are not objects.
const (
	optionsSection  = "options.yaml"
	problemsSection = "problems.txt"
	statusSection   = "status.yaml"
	xdsSection      = "xds.yaml"
)

// outputs are the sections that the pipeline fills, in their order. An empty one
// is not there.
var outputs = []string{problemsSection, statusSection, xdsSection}

// file is one golden file.
type file struct {
	path    string
	comment []byte
	inputs  []txtar.File // as they are written
	options options
	objects string // all objects as one stream, with templates expanded
	want    map[string]string
}

// options is what options.yaml may say: the flags of `gatehouse translate`.
type options struct {
	Experimental bool     `json:"experimental"`
	Bind         []string `json:"bind"`
	PortOffset   int      `json:"portOffset"`

	HTTP3         bool   `json:"http3"`
	ProxyProtocol bool   `json:"proxyProtocol"`
	TrustedHops   uint32 `json:"trustedHops"`

	// Unsafe is --allow-unsafe-parameters.
	Unsafe bool `json:"unsafeParameters"`

	// Whole prints resources with all that every resource of their type has.
	Whole bool `json:"whole"`
}

// each runs a test on every golden file.
func each(t *testing.T, test func(t *testing.T, f *file)) {
	t.Helper()
	for _, path := range paths(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			test(t, read(t, path))
		})
	}
}

// paths are those of all golden files.
func paths(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no golden files", err)
	}
	return paths
}

// read reads a golden file.
func read(t *testing.T, path string) *file {
	t.Helper()
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &file{path: path, comment: a.Comment, want: map[string]string{}}
	if len(strings.TrimSpace(string(a.Comment))) == 0 {
		t.Fatal("the comment at the top must say what the file protects")
	}
	var objects []string
	for _, s := range a.Files {
		switch {
		case slices.Contains(outputs, s.Name):
			f.want[s.Name] = string(s.Data)
			continue
		case s.Name == optionsSection:
			if err := yaml.UnmarshalStrict(s.Data, &f.options); err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
		default:
			text, err := expand(s.Name, string(s.Data))
			if err != nil {
				t.Fatal(err)
			}
			objects = append(objects, text)
		}
		f.inputs = append(f.inputs, s)
	}
	f.objects = strings.Join(objects, "\n---\n")
	return f
}

// evaluate puts all objects through the pipeline at once, as `gatehouse
// translate` does.
func (f *file) evaluate(t *testing.T) *pipeline.Pipeline {
	t.Helper()
	return f.evaluated(t, f.objects)
}

func (f *file) evaluated(t *testing.T, objects string) *pipeline.Pipeline {
	t.Helper()
	p, err := standalone.Evaluate(t.Context(), standalone.EvaluateOptions{
		Paths: []string{"-"}, Stdin: strings.NewReader(objects),
		Experimental: f.options.Experimental, Bind: f.options.Bind, PortOffset: f.options.PortOffset,
		UnsafeParameters: f.options.Unsafe,
		Client: standalone.ClientOptions{
			HTTP3: f.options.HTTP3, Client: ir.Client{ProxyProtocol: f.options.ProxyProtocol, TrustedHops: f.options.TrustedHops},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	failed(t, p)
	return p
}

// load reads the objects without evaluating them.
func (f *file) load(t *testing.T) source.Batch {
	t.Helper()
	s, err := sourcefile.New(sourcefile.Options{
		Paths: []string{"-"}, Stdin: strings.NewReader(f.objects),
		Experimental: f.options.Experimental, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// failed fails the test where a table's function panicked.
func failed(t *testing.T, p *pipeline.Pipeline) {
	t.Helper()
	for _, s := range p.Engine.Stats() {
		if s.Panics > 0 {
			t.Errorf("table %s: %d units failed", s.Table, s.Panics)
		}
	}
}
