package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// Absent says that an object doesn't exist, and which one may be meant; nil where it exists.
func Absent(p *pipeline.Pipeline, key object.Key) error {
	exists := false
	var names []object.Name
	p.Engine.View(func(c *flow.Ctx) {
		if exists = p.Inputs.Exists(c, key); !exists && p.Kinds.Of(key.Kind) != nil {
			p.Inputs.Each(c, key.Kind, func(name object.Name) { names = append(names, name) })
		}
	})
	if exists {
		return nil
	}
	slices.SortFunc(names, object.Name.Compare)
	return fmt.Errorf("there is no %s%s", key, instead(key.Name, names))
}

// instead says which of some names may be meant by one that is not among them, or else what the
// first are; empty if there are none.
func instead(wanted object.Name, names []object.Name) string {
	near := spelling.Nearest(wanted.Name, func(yield func(string) bool) {
		for _, name := range names {
			if name.Namespace == wanted.Namespace && !yield(name.Name) {
				return
			}
		}
	})
	if near != "" {
		return "; did you mean " + near + "?"
	}
	if len(names) == 0 {
		return ""
	}
	const few = 5
	return "; there is " + First(len(names), few, func(i int) string { return names[i].String() })
}

// First names the first of n things and counts the others: "a, b and 3 more".
func First(n, most int, name func(int) string) string {
	var names []string
	for i := range min(n, most) {
		names = append(names, name(i))
	}
	text := strings.Join(names, ", ")
	if more := n - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
