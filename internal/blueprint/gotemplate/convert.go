package gotemplate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	"sigs.k8s.io/yaml"
)

// Names are the expressions for what a template reads.
type Names struct {
	Roots     map[string]string // by the name in the template's data, such as Gateway
	Resources map[string]string // ids, by the names of other templates
}

// Object is a template of a blueprint.
type Object struct {
	Template any
	// IncludeWhen is an expression; empty for always.
	IncludeWhen string
	// Problems are what has to be done by hand.
	Problems []string
}

// Convert turns a Go template into an object.
func Convert(text string, names Names) (out Object) {
	c := &converter{names: names, source: text}
	tree, when := c.tree()
	out.Template, out.IncludeWhen = c.structured(tree), when
	out.Problems = c.problems
	return out
}

// converter writes YAML with marks.
type converter struct {
	names    Names
	source   string
	out      []byte
	marks    []mark
	ifs      []*open
	items    int // variables of range so far
	problems []string
}

// mark is what stands in the place of an action.
type mark struct {
	expression string
	over       *loop // of a list by range
}

// loop is a list that range makes.
type loop struct {
	list, item string // expressions: what it runs over, and the name of an element
	body       any    // an element of the result, with marks
}

// open is an if whose body is being written.
type open struct {
	condition string
	start     int
	done      bool // its condition is in the expression of its body
}

// scope is what {{ . }} stands for: empty for the template's data.
type scope string

// tree is the template as YAML with marks, and the condition under which there is an object.
func (c *converter) tree() (tree any, when string) {
	if strings.ContainsAny(c.source, "⟦⟧") {
		c.problems = append(c.problems, "has ⟦ or ⟧, which stand for something else here; write it by hand")
		return nil, ""
	}
	t := parse.New("template")
	t.Mode = parse.SkipFuncCheck
	if _, err := t.Parse(c.source, "", "", map[string]*parse.Tree{}); err != nil {
		c.problems = append(c.problems, err.Error())
		return nil, ""
	}
	list := t.Root.Nodes
	solid := slices.DeleteFunc(slices.Clone(list), func(n parse.Node) bool {
		text, ok := n.(*parse.TextNode)
		return ok && len(strings.TrimSpace(string(text.Text))) == 0
	})
	if len(solid) == 1 {
		if n, ok := solid[0].(*parse.IfNode); ok && n.ElseList == nil {
			when, list = c.condition(n.Pipe, ""), n.List.Nodes
		}
	}
	c.write(list, "")
	if err := yaml.Unmarshal(c.out, &tree); err != nil {
		c.problems = append(c.problems, "what is left without its actions is no YAML: "+err.Error())
		return nil, when
	}
	if strings.Contains(string(c.out), "\n---") {
		c.problems = append(c.problems, "makes several objects; write a resource for each")
	}
	return tree, when
}

func (c *converter) problem(n parse.Node, format string, args ...any) {
	line := 1 + strings.Count(c.source[:min(int(n.Position()), len(c.source))], "\n")
	c.problems = append(c.problems, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
}

// write writes nodes.
func (c *converter) write(nodes []parse.Node, dot scope) {
	for _, n := range nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			c.out = append(c.out, n.Text...)
		case *parse.ActionNode:
			c.action(n, dot)
		case *parse.IfNode:
			c.branches(n, dot)
		case *parse.RangeNode:
			c.list(n, dot)
		case *parse.CommentNode:
		default:
			c.problem(n, "%s can't be turned into expressions", n)
		}
	}
}

func (c *converter) add(m mark) string {
	c.marks = append(c.marks, m)
	return fmt.Sprintf("⟦%d⟧", len(c.marks)-1)
}

// action writes a mark for a value.
func (c *converter) action(n *parse.ActionNode, dot scope) {
	if len(n.Pipe.Decl) > 0 {
		c.problem(n, "%s: there are no variables; repeat the expression", n)
		return
	}
	value, indent, ok := structure(n.Pipe)
	if !ok {
		c.out = append(c.out, c.add(mark{expression: c.value(n.Pipe, dot)})...)
		return
	}
	c.place(mark{expression: c.value(value, dot)}, indent)
}

// place writes a mark for a map or a list: as the value of the field before it, or merged into the
// map in which it stands.
func (c *converter) place(m mark, indent int) {
	text := strings.TrimRight(string(c.out), " \n\t")
	field := strings.HasSuffix(text, ":")
	for _, o := range slices.Backward(c.ifs) {
		if o.start < len(c.out) && strings.TrimSpace(string(c.out[o.start:])) != "" {
			break
		}
		o.done = true
		if field {
			m.expression = optional(o.condition, m.expression)
		} else {
			m.expression = orNothing(o.condition, m.expression)
		}
	}
	if parts := lastField.FindStringSubmatch(m.expression); parts != nil { // toYaml makes nothing of what isn't there
		m.expression = parts[1] + ".?" + parts[2]
		if !field {
			m.expression += ".orValue({})"
		}
	}
	if field {
		c.out = append([]byte(text), " "+c.add(m)...)
		return
	}
	if indent < 0 || indent > 200 {
		indent = len(c.out) - 1 - strings.LastIndex(string(c.out), "\n")
	}
	c.out = append([]byte(text), "\n"+strings.Repeat(" ", indent)+c.add(m)+": null"...)
}

// optional is a value that is there under a condition.
func optional(condition, value string) string {
	return fmt.Sprintf("%s ? optional.of(dyn(%s)) : optional.none()", condition, value)
}

// orNothing is a map that has no fields unless a condition is true.
func orNothing(condition, fields string) string {
	return fmt.Sprintf("(%s ? %s : {})", condition, fields)
}

// branches writes the bodies of an if, with its condition at each field of theirs.
func (c *converter) branches(n *parse.IfNode, dot scope) {
	line := string(c.out[strings.LastIndex(string(c.out), "\n")+1:])
	if strings.TrimSpace(line) != "" && !strings.Contains(n.List.String(), "\n") {
		c.out = append(c.out, c.add(mark{expression: c.asText(n, n.String(), dot)})...)
		return
	}
	condition := c.condition(n.Pipe, dot)
	c.body(n.List, condition, dot)
	if n.ElseList != nil {
		c.body(n.ElseList, "!("+condition+")", dot)
	}
}

var fieldLine = regexp.MustCompile(`^( *)([^\s:#-][^:]*:(?:\s.*)?)$`)

func (c *converter) body(list *parse.ListNode, condition string, dot scope) {
	o := &open{condition: condition, start: len(c.out)}
	c.ifs = append(c.ifs, o)
	c.write(list.Nodes, dot)
	c.ifs = c.ifs[:len(c.ifs)-1]
	if o.done {
		return
	}
	lines := strings.Split(string(c.out[o.start:]), "\n")
	least := -1
	for _, line := range lines {
		if at := len(line) - len(strings.TrimLeft(line, " ")); strings.TrimSpace(line) != "" && !strings.HasPrefix(strings.TrimSpace(line), "#") && (least < 0 || at < least) {
			least = at
		}
	}
	for i, line := range lines {
		parts := fieldLine.FindStringSubmatch(line)
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#") || len(line)-len(strings.TrimLeft(line, " ")) > least:
		case parts == nil:
			c.problem(list, "the condition %s can't be put to %q; write it by hand", condition, strings.TrimSpace(line))
		default:
			lines[i] = parts[1] + c.add(mark{expression: condition}) + parts[2]
		}
	}
	c.out = append(c.out[:o.start], strings.Join(lines, "\n")...)
}

// list writes a mark for the list that range makes.
func (c *converter) list(n *parse.RangeNode, dot scope) {
	text := strings.TrimRight(string(c.out), " \n\t")
	if !strings.HasSuffix(text, ":") || len(n.Pipe.Decl) > 0 || n.ElseList != nil {
		c.problem(n, "range can't be turned into a list here: %s", firstLine(n.String()))
		return
	}
	c.items++
	l := &loop{list: c.value(n.Pipe, dot), item: "item" + strconv.Itoa(c.items)}
	before, ifs := c.out, c.ifs
	column := len(c.out) - 1 - strings.LastIndex(string(c.out), "\n")
	c.out, c.ifs = []byte(strings.Repeat(" ", column)), nil // a first line whose own indentation is trimmed has that of range
	c.write(n.List.Nodes, scope(l.item))
	var items []any
	err := yaml.Unmarshal(c.out, &items)
	c.out, c.ifs = before, ifs
	if err != nil || len(items) != 1 {
		c.problem(n, "range makes no list with an element for each: %s", firstLine(n.String()))
		return
	}
	l.body = items[0]
	c.place(mark{over: l, expression: fmt.Sprintf("%s.map(%s, %s)", l.list, l.item, c.literal(l.body))}, -1)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Addresses turns the template of a Gateway's status into where its addresses come from.
func Addresses(text string, names Names) (out []map[string]any, problems []string) {
	c := &converter{names: names, source: text}
	tree, _ := c.tree()
	of, _ := tree.(map[string]any)
	switch list := of["addresses"].(type) {
	case []any:
		for _, item := range list {
			if address, ok := c.structured(item).(map[string]any); ok {
				out = append(out, address)
			}
		}
	case string:
		m := c.alone(list)
		if m == nil || m.over == nil {
			break
		}
		address, _ := m.over.body.(map[string]any)
		if value, ok := address["value"]; ok {
			out = append(out, map[string]any{"type": address["type"], "value": fmt.Sprintf("${%s.map(%s, %s)}", m.over.list, m.over.item, c.literal(value))})
		}
	}
	if len(out) == 0 {
		c.problems = append(c.problems, "has no addresses that can be turned; write spec.addresses by hand")
	}
	return out, c.problems
}
