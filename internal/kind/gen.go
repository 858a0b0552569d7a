//go:build ignore

// Command gen writes the rights that reading kinds and writing their statuses takes:
// into the chart, and into the manifest of the provisioner, whose processes one role
// serves.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/foreign"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// rule is one of a role.
type rule struct {
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	Verbs     []string `json:"verbs"`
}

// rules are those of the chart's roles.
type rules struct {
	Cluster []rule `json:"cluster"` // what belongs to no namespace, read and written
	Read    []rule `json:"read"`
	Status  []rule `json:"status"`
	// What those read who only make fleets.
	FleetsCluster []rule `json:"fleetsCluster"`
	FleetsRead    []rule `json:"fleetsRead"`
}

func main() {
	if err := generate(filepath.Join("..", "..")); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate(root string) error {
	text, err := yaml.Marshal(rules{
		Cluster: slices.Concat(reading(kind.All, kind.ClusterScoped), writing(kind.ClusterScoped)),
		Read:    namespaced(),
		Status:  writing(kind.Namespaced),

		FleetsCluster: reading(kind.All.OfFleets(), kind.ClusterScoped),
		FleetsRead:    reading(kind.All.OfFleets(), kind.Namespaced),
	})
	if err != nil {
		return err
	}
	text = append([]byte("# Written by go generate ./internal/kind: what kinds take to be read, and to be given a status.\n"), text...)
	if err := os.WriteFile(filepath.Join(root, "charts", "gatehouse", "files", "rules.yaml"), text, 0o644); err != nil {
		return err
	}

	// static-mode writes no status of classes.
	text, err = yaml.Marshal(slices.Concat(reading(kind.All, kind.ClusterScoped), namespaced(), writing(kind.Namespaced)))
	if err != nil {
		return err
	}
	return replace(filepath.Join(root, "config", "provisioner.yaml"), text)
}

// namespaced are the rules for reading objects in namespaces, other implementations' policies too.
func namespaced() []rule {
	all := map[string]*rule{}
	for _, k := range foreign.Kinds {
		add(all, k.Group(), k.Plural, []string{"list", "watch"})
	}
	return slices.Concat(reading(kind.All, kind.Namespaced), sorted(all))
}

// reading are the rules for objects of a scope.
func reading(kinds *kind.Table, scope kind.Scope) []rule {
	return group(kinds, scope, func(d *kind.Descriptor) (string, []string) {
		if d.Reading == kind.Everywhere {
			return d.Plural, []string{"list", "watch"}
		}
		return d.Plural, []string{"get", "list", "watch"} // one by one too
	})
}

// writing are the rules for their statuses.
func writing(scope kind.Scope) []rule {
	return group(kind.All, scope, func(d *kind.Descriptor) (string, []string) {
		if d.Status == nil {
			return "", nil
		}
		return d.Plural + "/status", []string{"patch"}
	})
}

// group makes rules of what each kind takes: one for each API group and its verbs.
func group(kinds *kind.Table, scope kind.Scope, of func(*kind.Descriptor) (resource string, verbs []string)) []rule {
	all := map[string]*rule{}
	for d := range kinds.Rows() {
		resource, verbs := of(d)
		if d.Scope != scope || resource == "" {
			continue
		}
		add(all, d.Kind.Group(), resource, verbs)
	}
	return sorted(all)
}

// add puts a resource into the rule of its group and verbs.
func add(all map[string]*rule, group, resource string, verbs []string) {
	key := fmt.Sprint(group, verbs)
	if all[key] == nil {
		all[key] = &rule{APIGroups: []string{group}, Verbs: verbs}
	}
	all[key].Resources = append(all[key].Resources, resource)
}

func sorted(all map[string]*rule) (out []rule) {
	for r := range maps.Values(all) {
		slices.Sort(r.Resources)
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b rule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Verbs, b.Verbs))
	})
	return out
}

// The generated part of a file is between these lines.
const (
	begin = "# Written by go generate ./internal/kind:\n"
	end   = "# Written by hand:\n"
)

func replace(file string, text []byte) error {
	was, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(was, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return fmt.Errorf("%s: there is no place for rules", file)
	}
	return os.WriteFile(file, slices.Concat(before, []byte(begin), text, []byte(end), after), 0o644)
}
