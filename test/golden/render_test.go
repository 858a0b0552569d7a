package golden

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// render returns the outputs of a pipeline, in the short form of README.md.
func (f *file) render(t *testing.T, p *pipeline.Pipeline) map[string]string {
	t.Helper()
	out := map[string]string{}
	keep := func(name, text string) {
		if text != "" {
			out[name] = text
		}
	}
	var problems strings.Builder
	for _, problem := range view.Of(p).Problems {
		fmt.Fprintln(&problems, problem.Error())
	}
	keep(problemsSection, problems.String())
	keep(statusSection, marshal(t, shortStatus(stage[[]map[string]any](t, p, view.StageStatus))))
	xds := stage[[]map[string]any](t, p, view.StageXDS)
	if !f.options.Whole {
		subtract(xds, commonplace(t))
	}
	keep(xdsSection, marshal(t, shortXDS(xds)))
	return out
}

// stage returns a stage of the pipeline as `gatehouse translate` prints it.
func stage[T any](t *testing.T, p *pipeline.Pipeline, name view.Stage) (out T) {
	t.Helper()
	if err := yaml.Unmarshal(printed(t, p, name), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func printed(t *testing.T, p *pipeline.Pipeline, name view.Stage) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := view.Print(&text, p, name); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// marshal returns YAML; nothing for an empty list.
func marshal(t *testing.T, list []map[string]any) string {
	t.Helper()
	if len(list) == 0 {
		return ""
	}
	text, err := yaml.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shortStatus writes every condition on one line. The generation that it has
// observed is left out where it is the object's, as it should be, and the time of
// its last transition where it is not known, as in an evaluation.
func shortStatus(items []map[string]any) []map[string]any {
	for _, item := range items {
		delete(item, "apiVersion")
		metadata, _ := item["metadata"].(map[string]any)
		generation := metadata["generation"]
		if generation == 1.0 {
			delete(metadata, "generation")
		}
		walk(item["status"], func(m map[string]any) {
			list, ok := m["conditions"].([]any)
			if !ok {
				return
			}
			for i := range list {
				list[i] = shortCondition(list[i].(map[string]any), generation)
			}
		})
	}
	return items
}

func shortCondition(c map[string]any, generation any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v=%v %v", c["type"], c["status"], c["reason"])
	if observed := c["observedGeneration"]; observed != generation {
		fmt.Fprintf(&b, " (observed generation %v)", observed)
	}
	if at := c["lastTransitionTime"]; at != nil {
		fmt.Fprintf(&b, " (since %v)", at)
	}
	fmt.Fprintf(&b, ": %v", c["message"])
	return b.String()
}

// shortXDS leaves out versions, which are hashes, and the wrapping of resources
// that have their name in them. Hosts are sorted: to Envoy their order says nothing.
func shortXDS(gateways []map[string]any) []map[string]any {
	out := make([]map[string]any, 0, len(gateways))
	for _, g := range gateways {
		short := map[string]any{"gateway": g["gateway"]}
		for kind, list := range g["resources"].(map[string]any) {
			var resources []any
			for _, r := range list.([]any) {
				wrapped := r.(map[string]any)
				resource, _ := wrapped["resource"].(map[string]any)
				own := resource["name"]
				sortHosts(resource)
				if kind == "endpoints" {
					own = resource["clusterName"]
				}
				if own == wrapped["name"] {
					resources = append(resources, resource)
				} else {
					delete(wrapped, "version")
					resources = append(resources, wrapped)
				}
			}
			short[kind] = resources
		}
		out = append(out, short)
	}
	return out
}

func sortHosts(table map[string]any) {
	hosts, _ := table["virtualHosts"].([]any)
	slices.SortFunc(hosts, func(a, b any) int {
		return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
	})
}

// walk calls visit for every object of a document, outermost first.
func walk(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(v)
		for _, inner := range v {
			walk(inner, visit)
		}
	case []any:
		for _, inner := range v {
			walk(inner, visit)
		}
	}
}
