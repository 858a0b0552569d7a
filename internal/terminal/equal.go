package terminal

import (
	"fmt"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// together divides a list into groups of what is equal, in the order of the first of each.
func together[T any, K comparable](list []T, key func(T) K) [][]T {
	at := map[K]int{}
	var out [][]T
	for _, x := range list {
		k := key(x)
		i, ok := at[k]
		if !ok {
			i, at[k] = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], x)
	}
	return out
}

// eachOr is together; without a key each is by itself.
func eachOr[T any, K comparable](list []T, key func(T) K) [][]T {
	if key != nil {
		return together(list, key)
	}
	out := make([][]T, len(list))
	for i := range list {
		out[i] = list[i : i+1]
	}
	return out
}

// count is how many there are in groups.
func count[T any](groups [][]T) int {
	n := 0
	for _, g := range groups {
		n += len(g)
	}
	return n
}

// said is what equal problems have in common.
type said struct {
	reason         source.Reason
	field, message string
	stale, object  bool
}

func saidOf(p source.Problem) said {
	return said{p.Reason, p.Field, p.Message, p.Stale, !p.Key.IsZero()}
}

// namedFirst is how many of equal things are named.
const namedFirst = 3

// equalLines tells what is wrong with several inputs alike: what, with how many, and which
// are the first.
func equalLines(s Style, list []source.Problem, width int) []string {
	if len(list) == 1 {
		return problemLines(s, list[0], width)
	}
	first := list[0]
	objects, files := map[object.Key]bool{}, map[string]bool{}
	for _, p := range list {
		objects[p.Key], files[p.File] = true, true
	}
	count := plural(len(files), "file")
	if !first.Key.IsZero() {
		count = plural(len(objects), "object")
	}
	if n := len(list); first.Key.IsZero() && n > len(files) || !first.Key.IsZero() && n > len(objects) {
		count = fmt.Sprintf("%d times in %s", n, count)
	}
	what := source.Problem{Field: first.Field, Message: first.Message}
	lines := problemText(s, count+": "+what.Error(), width)
	if first.Stale {
		lines = append(lines, "      "+s.dim("their last valid versions stay in force"))
	}
	where := view.First(len(list), namedFirst, func(i int) string { return place(list[i]) })
	for _, l := range wrap(Clean(where), width-6, 0) {
		lines = append(lines, "      "+s.dim(l))
	}
	return lines
}

// place names an object and the line of the file that it is in, as far as they are known.
func place(p source.Problem) string {
	at := p.File
	if p.Line > 0 {
		at += fmt.Sprintf(":%d", p.Line)
	}
	switch {
	case p.Key.IsZero():
		return at
	case at == "":
		return p.Key.String()
	}
	return p.Key.String() + " (" + at + ")"
}

// inTrouble is what objects have in common that are told in one row.
type inTrouble struct{ kind, state, message string }

// alike divides items into rows: each by itself, but those with the same trouble together.
func (s Screen) alike(items []view.Item) [][]view.Item {
	i := 0
	return together(items, func(it view.Item) any {
		i++
		reason, _, bad := it.Summary.Trouble()
		if !bad || s.Choice.Each || it.Summary.Message == "" {
			return i
		}
		return inTrouble{it.Kind, reason, it.Summary.Message}
	})
}

// otherNames names those of equal items that come after the first.
func otherNames(items []view.Item) string {
	others := slices.Clone(items[1:])
	return "also " + view.First(len(others), namedFirst, func(i int) string { return objectName(others[i].Metadata) })
}
