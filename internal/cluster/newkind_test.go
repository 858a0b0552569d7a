package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/newkind"
)

// A kind takes a row in the table of kinds to be read from files and from a cluster,
// validated, shown and given a status.
func TestNewKind(t *testing.T) {
	row := newkind.Descriptor(t)
	in := install(t, row)
	apiserver.InstallCRDs(t, in.Config, newkind.Definition(t))
	in.permit(row)
	dir := t.TempDir()
	write := func(name, spec string) {
		t.Helper()
		text := `{apiVersion: example.test/v1, kind: Widget, metadata: {namespace: team, name: ` + name + `}, spec: ` + spec + `}`
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("file", "{}")
	write("wrong", "{size: 0}")
	in.apply(`{apiVersion: example.test/v1, kind: Widget, metadata: {namespace: team, name: cluster}, spec: {size: 3}}`)

	r := in.start(func(c *configuration.Configuration) {
		c.Sources = append([]configuration.Source{{Files: &configuration.Files{Paths: []string{dir}}}}, c.Sources...)
	})
	in.until("objects from a file and from the cluster are shown", func() bool {
		var names []string
		for _, it := range view.Of(r.pipeline).Items {
			if it.TypeMeta == row.TypeMeta("v1") && it.Summary.OK && it.Summary.State == "Accepted" {
				names = append(names, it.Metadata.Name)
			}
		}
		return slices.Equal(names, []string{"cluster", "file"})
	})
	if problems := view.Of(r.pipeline).Problems; !slices.ContainsFunc(problems, func(p source.Problem) bool {
		return p.Key.Kind == row.Kind && p.Key.Name.Name == "wrong" && p.Field == "spec.size" && p.Reason == source.Invalid
	}) {
		t.Errorf("the file that is wrong is no problem: %v", problems)
	}
	in.until("the status is written", func() bool {
		o := &newkind.Widget{}
		if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "cluster"}, o); err != nil {
			t.Fatal(err)
		}
		c, ok := condition.Find(o.Status.Conditions, "Accepted")
		return ok && c.Status == metav1.ConditionTrue && c.ObservedGeneration == 1 && !c.LastTransitionTime.IsZero()
	})
}

// permit gives the controllers the rights that a kind needs, as the chart does.
func (in *installed) permit(d *kind.Descriptor) {
	in.Helper()
	in.allow(d.Plural,
		rbacv1.PolicyRule{APIGroups: []string{d.Kind.Group()}, Resources: []string{d.Plural}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{d.Kind.Group()}, Resources: []string{d.Plural + "/status"}, Verbs: []string{"patch"}})
}
