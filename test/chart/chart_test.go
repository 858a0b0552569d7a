package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/cluster"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

var update = flag.Bool("update", false, "write what is rendered into testdata")

const chart = "../../charts/gatehouse"

// withoutCRDs leaves out what is long and does not depend on any other value.
const withoutCRDs = "crds.install=false"

// TestCases renders the values of each case. What is compared is how the result
// differs from that of the chart's own values.
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	standard := render(t, "--set", withoutCRDs)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			manifest := render(t, "--set", withoutCRDs, "--values", write(t, archive.Files[0].Data))
			valid(t, manifest)
			got := difference(t, standard, manifest)
			if *update {
				archive.Files = append(archive.Files[:1], txtar.File{Name: "diff", Data: got})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), string(got)); diff != "" {
				t.Errorf("run with -update and read what changed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMistakes has values that are refused, each with a word of the message.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for values, word := range map[string]string{
		"replcias: 3":                                "replcias",
		"replicas: many":                             "/replicas",
		"image: {pullPolicy: Sometimes}":             "/image/pullPolicy",
		"image: {digest: abc}":                       "/image/digest",
		"config: {kind: Configuration}":              "kind",
		"config: {ports: {xds: 0}}":                  "/config/ports/xds",
		"config: {sources: []}":                      "/config/sources",
		"config: {controllerName: nonsense}":         "/config/controllerName",
		"config: {sources: [{files: {paths: [x]}}]}": "/config/sources",
		"config: {log: {levl: debug}}":               "levl",
		"config: {log: {level: verbose}}":            "/config/log/level",
		"config: {log: {levels: {moon: debug}}}":     "moon",
		"config: {apiServer: {qps: 0}}":              "/config/apiServer/qps",
		"config: {infrastructure: {type: Moon}}":     "/config/infrastructure/type",
		"config: {identity: {proxyLifetime: 1d}}":    "/config/identity/proxyLifetime",
		"config: {leaderElection: {retryPeriod: 2}}": "/config/leaderElection/retryPeriod",
		"{config: {sources: [{kubernetes: {namespaces: [a]}}]}, gatewayClass: {parametersRef: {name: p, namespace: b}}}": "namespace b is not read",
		"extraVolumes: [{name: a}]":                "/extraVolumes/0",
		"extraVolumeMounts: [{name: a}]":           "mountPath",
		"gatewayClass: {parametersRef: {name: a}}": "namespace",
		"admissionPolicy: {pods: Some}":            "/admissionPolicy/pods",
		"fleetAPI: {enabled: maybe}":               "/fleetAPI/enabled",
		"admissionPolicy: {systemNamespaces: [A]}": "/admissionPolicy/systemNamespaces/0",
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			out, err := helm("template", "gatehouse", chart, "--values", write(t, []byte(values)))
			if err == nil {
				t.Fatalf("rendered:\n%s", out)
			}
			if !strings.Contains(err.Error(), word) {
				t.Errorf("the message has no %q: %v", word, err)
			}
		})
	}
}

// TestSchema protects against a field that the controller knows and the chart refuses,
// and against one whose mistakes only show when the pods end.
func TestSchema(t *testing.T) {
	t.Parallel()
	var values struct {
		Properties struct{ Config schema }
	}
	if err := json.Unmarshal(read(t, filepath.Join(chart, "values.schema.json")), &values); err != nil {
		t.Fatal(err)
	}
	values.Properties.Config.covers(t, "config", reflect.TypeFor[configuration.Configuration]())
}

// schema is what of a JSON schema the test of it reads.
type schema struct {
	Ref        string `json:"$ref"`
	Type       any
	Enum       []any
	Properties map[string]schema
	Additional any `json:"additionalProperties"`
	Items      *schema
}

// covers compares a schema with the fields of the type that the values become.
func (s schema) covers(t *testing.T, path string, typ reflect.Type) {
	switch typ.Kind() {
	case reflect.Pointer:
		s.covers(t, path, typ.Elem())
	case reflect.Slice:
		if s.Items == nil {
			t.Errorf("%s: anything may be an item", path)
			return
		}
		s.Items.covers(t, path+"[]", typ.Elem())
	case reflect.Struct:
		if typ.PkgPath() != reflect.TypeFor[configuration.Configuration]().PkgPath() {
			break // Kubernetes' own, such as a duration
		}
		if s.Additional != false {
			t.Errorf("%s: further fields pass", path)
		}
		fields := map[string]bool{}
		for field := range typ.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				continue // apiVersion and kind, which the chart adds
			}
			fields[name] = true
			if property, ok := s.Properties[name]; !ok {
				t.Errorf("%s.%s is not known", path, name)
			} else {
				property.covers(t, path+"."+name, field.Type)
			}
		}
		for name := range s.Properties {
			if !fields[name] {
				t.Errorf("%s.%s is not known to the controller", path, name)
			}
		}
		return
	}
	if s.Ref == "" && s.Type == nil && s.Enum == nil || s.Type == "object" && s.Additional == nil {
		t.Errorf("%s: anything passes", path)
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	if out, err := helm("lint", "--strict", chart); err != nil {
		t.Errorf("%s%v", out, err)
	}
}

// The plain manifests are the chart's. Whoever deletes what install.yaml has must not
// delete what others wrote or what the next installation needs: that is in base.yaml.
func TestManifests(t *testing.T) {
	t.Parallel()
	base := read(t, "../../config/namespace.yaml")
	for _, file := range crds(t) {
		base = append(base, read(t, file)...)
	}
	standard := render(t, "--set", withoutCRDs, "--no-hooks")
	for file, want := range map[string][]byte{"base.yaml": base, "install.yaml": standard} {
		if diff := cmp.Diff(string(read(t, filepath.Join("../../config", file))), string(want)); diff != "" {
			t.Errorf("%s: run make generate (-is +want):\n%s", file, diff)
		}
	}
	valid(t, standard)
	for _, kind := range []string{"kind: Namespace\n", "kind: CustomResourceDefinition\n", "kind: Secret\n"} {
		if bytes.Contains(standard, []byte("\n"+kind)) {
			t.Errorf("install.yaml has a %s", kind)
		}
	}
}

// The image of the chart and its pull policy are those of the proxies, too: what is
// rendered here is what the controller makes of its environment and configuration.
func TestProxyImage(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		released string // the digest that the chart was released with
		values   []string
		settings v1alpha1.Settings
		want     string
	}{
		"the chart's own": {want: "ghcr.io/gatehouse-dev/gatehouse:" + appVersion(t) + " IfNotPresent"},
		"another one": {
			values: []string{"--set", "image.repository=registry.example/gatehouse,image.tag=v2,image.pullPolicy=Never"},
			want:   "registry.example/gatehouse:v2 Never",
		},
		"by digest": {
			values: []string{"--set", "image.tag=v2,image.digest=" + digest},
			want:   "ghcr.io/gatehouse-dev/gatehouse@" + digest + " IfNotPresent",
		},
		"of a release": {
			released: digest,
			want:     "ghcr.io/gatehouse-dev/gatehouse@" + digest + " IfNotPresent",
		},
		"of a release, by another tag": {
			released: digest, values: []string{"--set", "image.tag=v2"},
			want: "ghcr.io/gatehouse-dev/gatehouse:v2 IfNotPresent",
		},
		"of the proxies only": {
			values: []string{"--set", "image.pullPolicy=Never,config.infrastructure.image=registry.example/proxy:v3,config.infrastructure.imagePullPolicy=Always"},
			want:   "registry.example/proxy:v3 Always",
		},
		"by parameters": {
			values: []string{"--set", "image.repository=registry.example/gatehouse,image.tag=v2,image.pullPolicy=Never"},
			settings: v1alpha1.Settings{Container: &v1alpha1.Container{Image: &v1alpha1.Image{
				Tag: new("v4"), PullPolicy: new(corev1.PullAlways),
			}}},
			want: "registry.example/gatehouse:v4 Always",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := chart
			if c.released != "" {
				dir = releasedChart(t, c.released)
			}
			manifest := renderFrom(t, dir, append(c.values, "--set", withoutCRDs)...)
			if image := objectOf[appsv1.Deployment](t, manifest, "Deployment").Spec.Template.Spec.Containers[0].Image; c.settings.Container == nil && !strings.Contains(strings.Join(c.values, ""), "infrastructure") && !strings.HasPrefix(c.want, image+" ") {
				t.Errorf("controllers run %s, want %s", image, c.want)
			}
			for _, env := range objectOf[appsv1.Deployment](t, manifest, "Deployment").Spec.Template.Spec.Containers[0].Env {
				if strings.HasPrefix(env.Name, "GATEHOUSE_") && env.Value != "" {
					t.Setenv(env.Name, env.Value)
				}
			}
			configuration, err := configuration.Parse([]byte(objectOf[corev1.ConfigMap](t, manifest, "ConfigMap").Data["config.yaml"]))
			if err != nil {
				t.Fatal(err)
			}
			fleet, err := infra.Render(cluster.FleetOptions(configuration, "gatehouse-system"), &infra.Gateway{
				Name: object.Name{Namespace: "shop", Name: "web"}, Class: "gatehouse", Settings: &c.settings,
			})
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			for _, o := range fleet {
				text, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				out.WriteString("\n---\n" + string(text))
			}
			proxy := objectOf[appsv1.Deployment](t, out.Bytes(), "Deployment").Spec.Template.Spec.Containers[0]
			if got := proxy.Image + " " + string(proxy.ImagePullPolicy); got != c.want {
				t.Errorf("proxies run %s, want %s", got, c.want)
			}
		})
	}
}

// appVersion is what the chart calls its image where it isn't told.
func appVersion(t *testing.T) string {
	t.Helper()
	var chart struct {
		AppVersion string `json:"appVersion"`
	}
	if err := yaml.Unmarshal(read(t, "../../charts/gatehouse/Chart.yaml"), &chart); err != nil {
		t.Fatal(err)
	}
	return chart.AppVersion
}

// objectOf returns the first object of a kind in a manifest.
func objectOf[T any](t *testing.T, manifest []byte, kind string) *T {
	t.Helper()
	for doc := range strings.SplitSeq(string(manifest), "\n---\n") {
		var meta struct{ Kind string }
		if err := yaml.Unmarshal([]byte(doc), &meta); err != nil {
			t.Fatal(err)
		}
		if meta.Kind == kind {
			out := new(T)
			if err := yaml.Unmarshal([]byte(doc), out); err != nil {
				t.Fatal(err)
			}
			return out
		}
	}
	t.Fatalf("there is no %s", kind)
	return nil
}

// The chart has the CRDs that the API has, and keeps them when it goes.
func TestCRDs(t *testing.T) {
	t.Parallel()
	if keep := []byte("helm.sh/resource-policy: keep"); !bytes.Contains(render(t), keep) || bytes.Contains(render(t, "--set", withoutCRDs), keep) {
		t.Error("CRDs should be there, to be kept, unless they are not wanted")
	}
	for _, file := range crds(t) {
		if !bytes.Equal(read(t, file), read(t, filepath.Join(chart, "files/crds", filepath.Base(file)))) {
			t.Errorf("%s: run make generate", file)
		}
	}
}

// crds are the files of our own CRDs.
func crds(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no CRDs", err)
	}
	return files
}

// valid checks that the controller takes the configuration that it is given.
func valid(t *testing.T, manifest []byte) {
	t.Helper()
	text := objectOf[corev1.ConfigMap](t, manifest, "ConfigMap").Data["config.yaml"]
	if _, err := configuration.Parse([]byte(text)); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// render runs `helm template` the way `make generate` does.
func render(t *testing.T, args ...string) []byte {
	t.Helper()
	return renderFrom(t, chart, args...)
}

// releasedChart is the chart as it is released: with the digest of its image.
func releasedChart(t *testing.T, digest string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "Chart.yaml")
	text := string(read(t, path)) + "annotations:\n  gatehouse.dev/image-digest: " + digest + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func renderFrom(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	out, err := helm(append([]string{"template", "gatehouse", dir, "--namespace", "gatehouse-system"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// helmPath is the program, which is asked for once: the go command takes longer to find
// it than it takes to render.
var helmPath = sync.OnceValues(func() (string, error) {
	path, err := exec.Command("go", "tool", "-modfile=../../tools/helm/go.mod", "-n", "helm").Output()
	return strings.TrimSpace(string(path)), err
})

func helm(args ...string) ([]byte, error) {
	path, err := helmPath()
	if err != nil {
		return nil, fmt.Errorf("helm: %w", err)
	}
	out, err := exec.Command(path, args...).Output()
	if exit := (&exec.ExitError{}); errors.As(err, &exit) {
		err = fmt.Errorf("helm %s: %w\n%s", args[0], err, exit.Stderr)
	}
	return out, err
}

// place is where a change is: of no interest, and another one with each line that is
// added somewhere.
var place = regexp.MustCompile(`(?m)^@@ .*$`)

// difference is the changed lines, with three lines around them.
func difference(t *testing.T, a, b []byte) []byte {
	t.Helper()
	out, err := exec.Command("diff", "-U3", "--label", "standard", "--label", "values", write(t, a), write(t, b)).Output()
	if exit := (&exec.ExitError{}); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatal(err)
	}
	return place.ReplaceAll(out, []byte("@@"))
}

func write(t *testing.T, data []byte) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
