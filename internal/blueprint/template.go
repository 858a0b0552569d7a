package blueprint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
)

// template is a compiled template: a tree like the one that it makes.
type template struct {
	field   string // its path, for errors
	literal any    // a scalar without expressions
	fields  map[string]*template
	items   []*template
	list    bool
	value   *expression // the whole text is an expression
	pieces  []piece     // a text with expressions in it
}

type piece struct {
	text string
	of   *expression // nil for a plain text
}

// compiler collects what is wrong with a blueprint.
type compiler struct {
	problems []Problem
	values   *valuesSchema // nil for none
}

// Problem is what is wrong with a field of a blueprint.
type Problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (c *compiler) problem(field, format string, args ...any) {
	c.problems = append(c.problems, Problem{field, fmt.Sprintf(format, args...)})
}

// template compiles a value of JSON.
func (c *compiler) template(env *cel.Env, field string, in any, depth int) *template {
	out := &template{field: field}
	if depth > maxDepth {
		c.problem(field, "is deeper than %d levels", maxDepth)
		return out
	}
	switch in := in.(type) {
	case map[string]any:
		out.fields = make(map[string]*template, len(in))
		for _, name := range slices.Sorted(maps.Keys(in)) {
			at := field + "." + name
			if strings.Contains(name, "${") {
				c.problem(at, "names of fields have no expressions; give the whole map as one, such as ${values.labels}")
			}
			out.fields[name] = c.template(env, at, in[name], depth+1)
		}
	case []any:
		out.list = true
		for i, item := range in {
			out.items = append(out.items, c.template(env, fmt.Sprintf("%s[%d]", field, i), item, depth+1))
		}
	case string:
		c.text(env, out, in)
	default:
		out.literal = in
	}
	return out
}

func (c *compiler) text(env *cel.Env, out *template, in string) {
	parts, err := split(in)
	if err != nil {
		c.problem(out.field, "%s", err)
		return
	}
	var plain strings.Builder
	for _, p := range parts {
		of := piece{text: p.text}
		if p.expression {
			if of.of = c.expression(env, out.field, p.text); of.of == nil {
				return
			}
		} else {
			plain.WriteString(p.text)
		}
		out.pieces = append(out.pieces, of)
	}
	switch {
	case len(out.pieces) == 1 && out.pieces[0].of != nil:
		out.value, out.pieces = out.pieces[0].of, nil
	case !slices.ContainsFunc(out.pieces, func(p piece) bool { return p.of != nil }):
		out.literal, out.pieces = plain.String(), nil
	}
}

// expression compiles an expression of a field; nil for none, and where it is wrong.
func (c *compiler) expression(env *cel.Env, field, source string) *expression {
	if source == "" {
		return nil
	}
	out, err := compile(env, source)
	for i := 0; err == nil && c.values != nil && i < len(out.values); i++ {
		err = c.values.knows(out.values[i])
	}
	if err != nil {
		c.problem(field, "%s", err)
		return nil
	}
	return out
}

// expressions yields all expressions of a template.
func (t *template) expressions(yield func(*expression)) {
	if t.value != nil {
		yield(t.value)
	}
	for _, p := range t.pieces {
		if p.of != nil {
			yield(p.of)
		}
	}
	for _, child := range t.fields {
		child.expressions(yield)
	}
	for _, child := range t.items {
		child.expressions(yield)
	}
}

// render makes the value that a template stands for. Absent says that the field is left out.
func (t *template) render(variables map[string]any) (out any, absent bool, err error) {
	switch {
	case t.value != nil:
		out, absent, err = t.value.evaluate(variables)
		if err != nil {
			err = fmt.Errorf("%s: %w", t.field, err)
		}
		return out, absent, err
	case t.pieces != nil:
		var text strings.Builder
		for _, p := range t.pieces {
			if p.of == nil {
				text.WriteString(p.text)
				continue
			}
			v, none, err := p.of.evaluate(variables)
			if err == nil && none {
				err = fmt.Errorf("${%s} has no value, and stands in the middle of a text", p.of.source)
			}
			var s string
			if err == nil {
				s, err = asText(v)
			}
			if err != nil {
				return nil, false, fmt.Errorf("%s: %w", t.field, err)
			}
			text.WriteString(s)
		}
		return text.String(), false, nil
	case t.fields != nil:
		fields := make(map[string]any, len(t.fields))
		for _, name := range slices.Sorted(maps.Keys(t.fields)) {
			v, none, err := t.fields[name].render(variables)
			if err != nil {
				return nil, false, err
			}
			if !none {
				fields[name] = v
			}
		}
		return fields, false, nil
	case t.list:
		items := make([]any, 0, len(t.items))
		for _, item := range t.items {
			v, none, err := item.render(variables)
			if err != nil {
				return nil, false, err
			}
			if !none {
				items = append(items, v)
			}
		}
		return items, false, nil
	default:
		return t.literal, false, nil
	}
}
