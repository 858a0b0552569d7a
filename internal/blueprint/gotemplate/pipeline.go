package gotemplate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template/parse"
)

// structure is what a pipeline gives to toYaml, with the indentation that it asks for, or -1.
func structure(p *parse.PipeNode) (value *parse.PipeNode, indent int, ok bool) {
	indent = -1
	cmds := p.Cmds
	if n := len(cmds); n > 0 && (function(cmds[n-1]) == "nindent" || function(cmds[n-1]) == "indent") && len(cmds[n-1].Args) == 2 {
		if number, isNumber := cmds[n-1].Args[1].(*parse.NumberNode); isNumber {
			indent = int(number.Int64)
		}
		cmds = cmds[:n-1]
	}
	n := len(cmds) - 1
	if n < 0 || function(cmds[n]) != "toYaml" {
		return nil, indent, false
	}
	out := &parse.PipeNode{NodeType: parse.NodePipe, Pos: p.Pos, Cmds: cmds[:n]}
	if args := cmds[n].Args[1:]; len(args) == 1 {
		out.Cmds = []*parse.CommandNode{{NodeType: parse.NodeCommand, Pos: cmds[n].Pos, Args: args}}
	}
	return out, indent, len(out.Cmds) > 0
}

// function is the name of the function that a command calls.
func function(cmd *parse.CommandNode) string {
	if name, ok := cmd.Args[0].(*parse.IdentifierNode); ok {
		return name.Ident
	}
	return ""
}

// value is the expression for a pipeline: in CEL where it has the same, else evaluated as it is.
func (c *converter) value(p *parse.PipeNode, dot scope) string {
	if out, ok := c.pipeline(p, dot); ok {
		return out
	}
	return c.asText(p, "{{"+p.String()+"}}", dot)
}

func (c *converter) pipeline(p *parse.PipeNode, dot scope) (string, bool) {
	if len(p.Decl) > 0 || len(p.Cmds) == 0 {
		return "", false
	}
	out, ok := c.command(p.Cmds[0], dot)
	for _, cmd := range p.Cmds[1:] {
		switch name := function(cmd); {
		case !ok:
		case name == "quote" || name == "toString":
			out = "string(" + out + ")"
		default:
			ok = false
		}
	}
	return out, ok
}

var lastField = regexp.MustCompile(`^([A-Za-z0-9_.]+)\.([A-Za-z_][A-Za-z0-9_]*)$`)

var verb = regexp.MustCompile(`%[svd]`)

func (c *converter) command(cmd *parse.CommandNode, dot scope) (string, bool) {
	name, args := function(cmd), cmd.Args[1:]
	if name == "" {
		if len(args) > 0 {
			return "", false
		}
		return c.argument(cmd.Args[0], dot)
	}
	var values []string
	for _, arg := range args {
		v, ok := c.argument(arg, dot)
		if !ok {
			return "", false
		}
		values = append(values, v)
	}
	switch {
	case (name == "quote" || name == "toString") && len(values) == 1:
		return "string(" + values[0] + ")", true
	case name == "first" && len(values) == 1:
		return values[0] + "[0]", true
	case name == "index" && len(values) == 2:
		if id, ok := strings.CutPrefix(values[0], resources); ok && values[1] == "0" {
			return id, true
		}
		return values[0] + "[" + values[1] + "]", true
	case name == "get" && len(values) == 2:
		if key, ok := args[1].(*parse.StringNode); ok && isName.MatchString(key.Text) {
			return values[0] + ".?" + key.Text, true
		}
	case name == "printf" && len(args) > 0:
		format, ok := args[0].(*parse.StringNode)
		if !ok || strings.Count(format.Text, "%") != len(values)-1 || len(verb.FindAllString(format.Text, -1)) != len(values)-1 {
			return "", false
		}
		var pieces []string
		for i, text := range verb.Split(format.Text, -1) {
			if text != "" {
				pieces = append(pieces, strconv.Quote(text))
			}
			if i+1 < len(values) {
				pieces = append(pieces, "string("+values[i+1]+")")
			}
		}
		return strings.Join(pieces, " + "), true
	}
	return "", false
}

var isName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// resources begins the expression for the objects of another template, which are a list there.
const resources = "resources of "

// argument is the expression for an operand.
func (c *converter) argument(n parse.Node, dot scope) (string, bool) {
	switch n := n.(type) {
	case *parse.PipeNode:
		return c.pipeline(n, dot)
	case *parse.DotNode:
		return string(dot), dot != ""
	case *parse.FieldNode:
		if dot != "" {
			return string(dot) + "." + strings.Join(n.Ident, "."), true
		}
		return c.root(n.Ident)
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			return c.root(n.Ident[1:])
		}
	case *parse.ChainNode:
		of, ok := c.argument(n.Node, dot)
		return of + "." + strings.Join(n.Field, "."), ok && !strings.HasPrefix(of, resources)
	case *parse.StringNode:
		return strconv.Quote(n.Text), true
	case *parse.NumberNode:
		return n.Text, true
	case *parse.BoolNode:
		return strconv.FormatBool(n.True), true
	}
	return "", false
}

// root is the expression for a field of the template's data.
func (c *converter) root(path []string) (string, bool) {
	switch {
	case path[0] == "Resources" && len(path) == 2:
		id, ok := c.names.Resources[path[1]]
		return resources + id, ok
	case path[0] == "Hostnames" && len(path) == 2:
		return "hostnames." + strings.ToLower(path[1]), true
	}
	of, ok := c.names.Roots[path[0]]
	return strings.Join(append([]string{of}, path[1:]...), "."), ok
}

// condition is the expression for what an if asks. Where CEL has no such question, the
// template is asked.
func (c *converter) condition(p *parse.PipeNode, dot scope) string {
	if out, ok := c.question(p, dot); ok {
		return out
	}
	return c.asText(p, "{{if "+p.String()+"}}yes{{end}}", dot) + ` == "yes"`
}

func (c *converter) question(n parse.Node, dot scope) (string, bool) {
	p, ok := n.(*parse.PipeNode)
	if !ok || len(p.Decl) > 0 || len(p.Cmds) != 1 {
		return "", false
	}
	cmd := p.Cmds[0]
	name, args := function(cmd), cmd.Args[1:]
	switch name {
	case "hasKey":
		if field, ok := c.command(&parse.CommandNode{NodeType: parse.NodeCommand, Pos: cmd.Pos, Args: append([]parse.Node{parse.NewIdentifier("get")}, args...)}, dot); ok {
			return "has(" + strings.Replace(field, ".?", ".", 1) + ")", true
		}
	case "not", "and", "or":
		var asked []string
		for _, arg := range args {
			q, ok := c.question(arg, dot)
			if !ok {
				return "", false
			}
			asked = append(asked, "("+q+")")
		}
		if name == "not" {
			return "!" + strings.Join(asked, ""), len(asked) == 1
		}
		return strings.Join(asked, map[string]string{"and": " && ", "or": " || "}[name]), true
	case "eq", "ne":
		if len(args) != 2 {
			return "", false
		}
		one, ok := c.argument(args[0], dot)
		other, ok2 := c.argument(args[1], dot)
		return one + map[string]string{"eq": " == ", "ne": " != "}[name] + other, ok && ok2
	}
	return "", false
}

// outside finds variables, and what reads other templates.
var outside = regexp.MustCompile(`\$\w|\$\s|\$}|\b(?:include|tpl|template)\b`)

var rootName = regexp.MustCompile(`(?:^|[^\w.)])\$?\.([A-Z]\w*)(?:\.(\w+))?`)

// asText evaluates a part of the template as it is. Its value is a text.
func (c *converter) asText(n parse.Node, source string, dot scope) string {
	if outside.MatchString(source) || dot != "" && strings.Contains(source, "$") {
		c.problem(n, "%s reads a variable, all of the data, or another template; write it by hand", source)
	}
	if dot != "" {
		return fmt.Sprintf("text(%s, %s)", strconv.Quote(source), dot)
	}
	data := map[string]string{}
	objects := map[string]string{}
	for _, found := range rootName.FindAllStringSubmatch(source, -1) {
		name := found[1]
		switch id, known := c.names.Resources[found[2]]; {
		case name == "Resources" && known:
			objects[found[2]] = "[" + id + "]"
		case name == "Hostnames":
			data[name] = `{"Union": hostnames.union, "Intersection": hostnames.intersection}`
		case c.names.Roots[name] != "":
			data[name] = c.names.Roots[name]
		default:
			c.problem(n, "%s reads .%s, which isn't known", source, name)
		}
	}
	if len(objects) > 0 {
		data["Resources"] = mapOf(objects)
	}
	return fmt.Sprintf("text(%s, %s)", strconv.Quote(source), mapOf(data))
}
