package topology

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// golden is a file of testdata.
type golden struct {
	path     string
	archive  *txtar.Archive
	settings settings
	objects  []source.Object
	nodes    string // that the objects make
}

// eachGolden runs a test for each golden file.
func eachGolden(t *testing.T, test func(t *testing.T, g golden)) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sections := map[string]string{}
			for _, f := range archive.Files {
				sections[f.Name] = string(f.Data)
			}
			g := golden{path: path, archive: archive, settings: settings{ImplicitClass: "gatehouse"}, nodes: sections["nodes.yaml"]}
			if err := yaml.UnmarshalStrict([]byte(sections["options.yaml"]), &g.settings); err != nil {
				t.Fatal(err)
			}
			g.objects = decode(t, sections["objects.yaml"])
			test(t, g)
		})
	}
}
