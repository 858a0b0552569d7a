package gotemplate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var marked = regexp.MustCompile(`⟦(\d+)⟧`)

// at is the mark with a number.
func (c *converter) at(number string) mark {
	i, _ := strconv.Atoi(number) // the converter wrote it
	return c.marks[i]
}

// keyOf divides a field's name into the conditions under which it is there and the name. A
// mark alone is what is merged into the map.
func (c *converter) keyOf(key string) (conditions []string, name string, merged *mark) {
	for {
		at := marked.FindStringSubmatchIndex(key)
		if at == nil || at[0] != 0 {
			return conditions, key, nil
		}
		m := c.at(key[at[2]:at[3]])
		if key = key[at[1]:]; key == "" {
			return conditions, "", &m
		}
		conditions = append(conditions, m.expression)
	}
}

// fields are those of a map, with what is merged into it.
type fields struct {
	names  []string // in order
	values map[string][]branch
	merged []string
}

// branch is a value under a condition; without one it is always there.
type branch struct {
	condition string
	value     any
}

func (c *converter) fields(of map[string]any) fields {
	out := fields{values: map[string][]branch{}}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		conditions, name, merged := c.keyOf(key)
		if merged != nil {
			e := merged.expression
			for _, condition := range slices.Backward(conditions) {
				e = orNothing(condition, e)
			}
			out.merged = append(out.merged, e)
			continue
		}
		if out.values[name] == nil {
			out.names = append(out.names, name)
		}
		var condition string
		for _, each := range conditions {
			condition = strings.TrimPrefix(condition+" && ("+each+")", " && ")
		}
		if b := out.values[name]; len(b) > 0 && (condition == "" || b[0].condition == "") {
			c.problems = append(c.problems, name+" stands there twice, once without a condition; write it by hand")
		}
		out.values[name] = append(out.values[name], branch{condition, of[key]})
	}
	slices.Sort(out.names)
	return out
}

// structured is a tree whose texts have expressions in place of marks.
func (c *converter) structured(in any) any {
	switch in := in.(type) {
	case map[string]any:
		f := c.fields(in)
		if len(f.merged) > 0 || slices.ContainsFunc(f.names, marked.MatchString) {
			return "${" + c.literal(in) + "}"
		}
		out := make(map[string]any, len(f.names))
		for _, name := range f.names {
			if b := f.values[name]; len(b) == 1 && b[0].condition == "" {
				out[name] = c.structured(b[0].value)
			} else {
				out[name] = "${" + c.choice(b) + "}"
			}
		}
		return out
	case []any:
		out := make([]any, len(in))
		for i, item := range in {
			out[i] = c.structured(item)
		}
		return out
	case string:
		text := strings.ReplaceAll(in, "${", "$${")
		return marked.ReplaceAllStringFunc(text, func(m string) string { return "${" + c.at(marked.FindStringSubmatch(m)[1]).expression + "}" })
	default:
		return in
	}
}

// choice is an optional: the first of some values whose condition is true.
func (c *converter) choice(branches []branch) string {
	out := "optional.none()"
	for _, b := range slices.Backward(branches) {
		value, ok := c.optional(b.value)
		if !ok {
			value = "optional.of(dyn(" + c.literal(b.value) + "))"
		}
		if b.condition == "" {
			out = value
			continue
		}
		out = fmt.Sprintf("%s ? %s : %s", b.condition, value, out)
	}
	return out
}

var optionalField = regexp.MustCompile(`^[A-Za-z0-9_.]+\.\?[A-Za-z0-9_]+$`)

// optional is the expression for a value that may not be there, and whether it is such a one.
func (c *converter) optional(in any) (string, bool) {
	m := c.alone(in)
	switch {
	case m == nil:
		return "", false
	case strings.HasSuffix(m.expression, ": optional.none()"):
		return "(" + m.expression + ")", true
	default:
		return m.expression, optionalField.MatchString(m.expression)
	}
}

// alone is the mark that is a whole value.
func (c *converter) alone(in any) *mark {
	text, _ := in.(string)
	if at := marked.FindStringSubmatch(text); at != nil && at[0] == text {
		m := c.at(at[1])
		return &m
	}
	return nil
}

// literal is the expression for a tree.
func (c *converter) literal(in any) string {
	switch in := in.(type) {
	case map[string]any:
		f := c.fields(in)
		var entries []string
		for _, name := range f.names {
			key := c.text(name)
			b := f.values[name]
			if value, ok := c.optional(b[0].value); ok && len(b) == 1 && b[0].condition == "" {
				entries = append(entries, "?"+key+": "+value)
			} else if len(b) == 1 && b[0].condition == "" {
				entries = append(entries, key+": dyn("+c.literal(b[0].value)+")")
			} else {
				entries = append(entries, "?"+key+": "+c.choice(b))
			}
		}
		out := "{" + strings.Join(entries, ", ") + "}"
		if len(f.merged) > 0 {
			parts := f.merged
			if len(entries) > 0 {
				parts = append([]string{out}, parts...)
			}
			return "merge([" + wrapped(parts) + "])"
		}
		return out
	case []any:
		var items []string
		for _, item := range in {
			items = append(items, c.literal(item))
		}
		return "[" + wrapped(items) + "]"
	case string:
		return c.text(in)
	case nil:
		return "null"
	default:
		return fmt.Sprint(in)
	}
}

// wrapped are elements of any types.
func wrapped(items []string) string {
	for i, item := range items {
		items[i] = "dyn(" + item + ")"
	}
	return strings.Join(items, ", ")
}

// text is the expression for a text with marks in it.
func (c *converter) text(in string) string {
	if m := c.alone(in); m != nil {
		return m.expression
	}
	var pieces []string
	last := 0
	for _, at := range marked.FindAllStringSubmatchIndex(in, -1) {
		if at[0] > last {
			pieces = append(pieces, strconv.Quote(in[last:at[0]]))
		}
		pieces, last = append(pieces, "string("+c.at(in[at[2]:at[3]]).expression+")"), at[1]
	}
	if last < len(in) || len(pieces) == 0 {
		pieces = append(pieces, strconv.Quote(in[last:]))
	}
	return strings.Join(pieces, " + ")
}

// mapOf is the expression for a map of expressions.
func mapOf(entries map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		out = append(out, fmt.Sprintf("%q: dyn(%s)", name, entries[name]))
	}
	return "{" + strings.Join(out, ", ") + "}"
}
