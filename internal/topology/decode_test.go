package topology

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// decode reads objects, each into its Go type.
func decode(t testing.TB, text string) []source.Object {
	t.Helper()
	var out []source.Object
	for doc := range strings.SplitSeq(expandPairs(t, text), "\n---\n") {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(doc), &meta); err != nil {
			t.Fatal(err)
		}
		var o source.Object
		for d := range kind.All.Rows() {
			if d.Kind.Name() == meta.Kind {
				o = d.New()
			}
		}
		if o == nil {
			t.Fatalf("no type for kind %q in:\n%s", meta.Kind, doc)
		}
		if err := yaml.UnmarshalStrict([]byte(doc), o); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		out = append(out, o)
	}
	return out
}
