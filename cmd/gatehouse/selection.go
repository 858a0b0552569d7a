package main

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// anyRoute stands for the kinds of routes, all of them.
const anyRoute = "Route"

// reported are the kinds that can be asked for: those with a status.
func reported() iter.Seq[*kind.Descriptor] {
	return func(yield func(*kind.Descriptor) bool) {
		for d := range kind.All.Rows() {
			if d.Status != nil && !yield(d) {
				return
			}
		}
	}
}

// kindWords are the kinds to complete a command line with.
func kindWords() []string {
	words := []string{strings.ToLower(anyRoute)}
	for d := range reported() {
		words = append(words, d.Word())
	}
	slices.Sort(words)
	return words
}

// wantedKinds names the kinds for a message.
func wantedKinds() string {
	var words []string
	for d := range reported() {
		if last := len(words) - 1; last >= 0 && strings.HasSuffix(words[last], "route") && d.Family != kind.Route {
			words = append(words, "route for all of these")
		}
		words = append(words, d.Word())
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// kindOf returns the kind that a word chooses. Plurals and capitals are taken care of.
func kindOf(word string) (string, bool) {
	word = strings.ToLower(word)
	for _, singular := range []string{
		word, strings.TrimSuffix(word, "s"), strings.TrimSuffix(word, "es"), strings.TrimSuffix(word, "ies") + "y",
	} {
		if singular == strings.ToLower(anyRoute) {
			return anyRoute, true
		}
		for d := range reported() {
			if singular == d.Word() || slices.Contains(d.Words, singular) {
				return d.Kind.Name(), true
			}
		}
	}
	return "", false
}

// selection is objects that a command line asks for.
type selection struct{ kind, namespace, name string }

func (s selection) String() string {
	switch {
	case s.name == "":
		return s.kind
	case s.namespace == "":
		return s.kind + " " + s.name
	}
	return s.kind + " " + s.namespace + "/" + s.name
}

// parseSelections reads what to show: KIND or KIND/NAME, any number of them, or
// KIND NAME... as kubectl has it.
func parseSelections(args []string) ([]selection, error) {
	var out []selection
	var failed error
	for _, arg := range args {
		s, err := parseSelection(arg)
		if err != nil && failed == nil {
			failed = err
		}
		out = append(out, s)
	}
	if failed == nil || len(args) < 2 || out[0].kind == "" || out[0].name != "" {
		return out, failed
	}
	for i, arg := range args[1:] {
		s, err := parseSelection(args[0] + "/" + arg)
		if err != nil {
			return nil, failed
		}
		out[i+1] = s
	}
	return out[1:], nil
}

// parseSelection reads KIND, KIND/NAME or KIND/NAMESPACE/NAME.
func parseSelection(text string) (selection, error) {
	parts := strings.Split(text, "/")
	of, ok := kindOf(parts[0])
	if !ok || len(parts) > 3 || slices.Contains(parts[1:], "") {
		return selection{}, usageError{fmt.Errorf("%q: want %s, with /NAME or /NAMESPACE/NAME", text, wantedKinds())}
	}
	s := selection{kind: of}
	switch len(parts) {
	case 2:
		s.name = parts[1]
	case 3:
		s.namespace, s.name = parts[1], parts[2]
	}
	return s, nil
}

func (s selection) chooses(name string) bool {
	return name == s.kind || s.kind == anyRoute && strings.HasSuffix(name, anyRoute)
}

func (s selection) matches(kind, namespace, name string) bool {
	return s.chooses(kind) && (s.name == "" || name == s.name) && (s.namespace == "" || namespace == s.namespace)
}

func (s selection) item(it view.Item) bool {
	return s.matches(it.Kind, it.Metadata.Namespace, it.Metadata.Name)
}

func (s selection) problem(p source.Problem) bool {
	return s.matches(p.Key.Kind.Name(), p.Key.Namespace, p.Key.Name.Name)
}

// choose leaves in a view what is asked for; with nothing asked for, all. A named
// object that doesn't exist is an error.
func choose(v *view.View, wanted []selection) error {
	if len(wanted) == 0 {
		return nil
	}
	for _, s := range wanted {
		if s.name != "" && !slices.ContainsFunc(v.Items, s.item) && !slices.ContainsFunc(v.Problems, s.problem) {
			return fmt.Errorf("%s not found%s", s, alternatives(v, s))
		}
	}
	v.Items = slices.DeleteFunc(v.Items, func(it view.Item) bool {
		return !slices.ContainsFunc(wanted, func(s selection) bool { return s.item(it) })
	})
	v.Problems = slices.DeleteFunc(v.Problems, func(p source.Problem) bool {
		return !slices.ContainsFunc(wanted, func(s selection) bool { return s.problem(p) })
	})
	v.Proxies = nil
	return nil
}

// alternatives lists the first objects of the kind, for a person who misspelt one.
func alternatives(v *view.View, wanted selection) string {
	const few = 5
	var names []string
	for _, it := range v.Items {
		if wanted.chooses(it.Kind) {
			names = append(names, it.Metadata.Namespace+"/"+it.Metadata.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ": there is " + view.First(len(names), few, func(i int) string { return names[i] })
}

// inFiles is where objects are from, unless they are from a cluster.
const inFiles = "the files hold"

// nothing says that there is nothing to show, and why that may be.
func nothing(wanted []selection, where string) string {
	if len(wanted) == 0 {
		return "no objects: " + where + " no Gateway of a class of ours and no route to one"
	}
	var kinds []string
	for _, s := range wanted {
		kinds = append(kinds, s.kind)
	}
	slices.Sort(kinds)
	return "no " + strings.Join(slices.Compact(kinds), " and no ") + ": " + where + " none that concerns Gatehouse"
}
