package file

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// An outline is what the lines of a text say, each by itself, of which object it is, and of the
// parents and hosts that it guards. It is what is held of text of which nothing makes YAML, or
// on which no more work can be spent: the time that it takes is in proportion to the text, and objects are held up to a number (maxObjects).

// outlines returns the outlines of the objects of a piece, of which a List has several.
func (p piece) outlines() (nodes []*yaml.Node) {
	for _, part := range p.items() {
		content := outlineOf(part.lines)
		if content == nil {
			continue
		}
		text, err := json.Marshal(content)
		if err != nil {
			continue
		}
		if tree, err := parseJSON(text); err == nil && len(tree) == 1 {
			lower(tree[0], part.above+part.firstLine())
			nodes = append(nodes, tree[0])
		}
	}
	return nodes
}

// firstLine is the index of the first line that isn't blank.
func (p piece) firstLine() int {
	return max(0, slices.IndexFunc(p.lines, func(line []byte) bool { return !blank(line) }))
}

var itemHead = regexp.MustCompile(`^([ \t]*-[ \t]+)(apiVersion|kind|metadata)[ \t]*:`)

// items are the items of a List that stands in a piece, without their indent, or the piece.
func (p piece) items() (parts []piece) {
	indent := 0
	for i, line := range p.lines {
		m := itemHead.FindSubmatch(line)
		switch {
		case m != nil:
			indent = len(m[1])
			parts = append(parts, piece{above: p.above + i, lines: [][]byte{line[indent:]}})
		case len(parts) > 0:
			rest := bytes.TrimLeft(line, " \t")
			last := &parts[len(parts)-1]
			last.lines = append(last.lines, line[min(indent, len(line)-len(rest)):])
		}
	}
	if len(parts) > 0 {
		return parts
	}
	first := p.firstLine()
	if first == len(p.lines) {
		return nil
	}
	indent = len(p.lines[first]) - len(bytes.TrimLeft(p.lines[first], " \t"))
	if indent == 0 {
		return []piece{p}
	}
	lines := make([][]byte, len(p.lines))
	for i, line := range p.lines {
		rest := bytes.TrimLeft(line, " \t")
		lines[i] = line[min(indent, len(line)-len(rest)):]
	}
	return []piece{{above: p.above, lines: lines}}
}

var (
	fieldLine = regexp.MustCompile(`^[ \t]*(-[ \t]+)?["']?([A-Za-z]+)["']?[ \t]*(?::[ \t]*(.*))?$`)
	itemLine  = regexp.MustCompile(`^[ \t]*-[ \t]*(.*)$`)
	flowField = regexp.MustCompile(`["']?([A-Za-z]+)["']?[ \t]*:[ \t]*([^,{}\[\]]*)`)
)

// refLists are the fields that name what an object is attached to, and refFields those of an
// item of them.
var (
	refLists  = []string{"parentRefs", "targetRefs", selectors}
	refFields = []string{"group", "kind", "namespace", "name", "sectionName", "port"}
	layers    = []string{"defaults", "overrides"}
)

// selectors is the field that names what an object is attached to by labels, and matchLabels the
// one of an item of it that has them.
const (
	selectors   = "targetSelectors"
	matchLabels = "matchLabels"
)

var (
	labelLine    = regexp.MustCompile(`^([ \t]*)["']?([A-Za-z0-9][A-Za-z0-9._/-]*)["']?[ \t]*:[ \t]*(.*)$`)
	flowSelector = regexp.MustCompile(`\{(?:[^{}]|\{[^{}]*\})*\}?`)
	flowLabels   = regexp.MustCompile(`matchLabels["']?[ \t]*:[ \t]*\{([^{}]*)\}?`)
	flowLabel    = regexp.MustCompile(`["']?([A-Za-z0-9][A-Za-z0-9._/-]*)["']?[ \t]*:[ \t]*([^,{}\[\]]*)`)
)

// outliner reads lines one by one.
type outliner struct {
	list string // the field whose list the line belongs to; empty for one of no concern
	refs map[string][]any
	ref  map[string]any
	host []any
	spec map[string]any
	// labels are those of ref, while they are being read, and indent is that of their field.
	labels map[string]any
	indent int
}

// outlineOf returns what lines say of an object; nil if they name nothing that it is attached to:
// then there is nothing to hold.
func outlineOf(lines [][]byte) map[string]any {
	o := &outliner{refs: map[string][]any{}, spec: map[string]any{}}
	for _, line := range lines {
		if !blank(line) {
			o.line(line)
		}
	}
	if len(o.refs) == 0 {
		return nil
	}
	head := headOf(bytes.Join(lines, []byte{'\n'}))
	meta, content := map[string]any{}, map[string]any{"spec": o.spec}
	for name, value := range head {
		if name == "apiVersion" || name == "kind" {
			content[name] = value
		} else {
			meta[name] = value
		}
	}
	content["metadata"] = meta
	for name, list := range o.refs {
		o.spec[name] = list
	}
	if len(o.host) > 0 {
		o.spec["hostnames"] = o.host
	}
	return content
}

func (o *outliner) line(line []byte) {
	if o.label(line) {
		return
	}
	m := fieldLine.FindSubmatch(line)
	if m == nil || o.list == "hostnames" && m[3] == nil && len(m[1]) > 0 {
		o.item(line)
		return
	}
	dash, name, rest := len(m[1]) > 0, string(m[2]), m[3]
	if o.ref != nil || o.list != "" && o.list != "hostnames" {
		if slices.Contains(refFields, name) {
			o.field(dash, name, rest)
			return
		}
		if o.list == selectors && (name == matchLabels || spelling.Nearest(name, slices.Values([]string{matchLabels})) != "") {
			o.field(dash, matchLabels, nil)
			o.labels, o.indent = labelsIn(rest), bytes.Index(line, m[2])
			o.ref[matchLabels] = o.labels
			return
		}
	}
	o.list, o.ref = "", nil
	switch {
	case name == "hostnames", spelling.Nearest(name, slices.Values([]string{"hostnames"})) != "":
		o.list = "hostnames"
		o.hosts(rest)
	case slices.Contains(layers, name):
		o.spec[name] = map[string]any{}
	default:
		if !slices.Contains(refLists, name) {
			name = spelling.Nearest(name, slices.Values(refLists))
		}
		if o.list = name; name != "" {
			o.flow(rest)
		}
	}
}

// item reads a line of a list that is no field.
func (o *outliner) item(line []byte) {
	text := bytes.TrimSpace(line)
	if m := itemLine.FindSubmatch(line); m != nil {
		text = m[1]
	}
	switch o.list {
	case "":
	case "hostnames":
		o.hosts(text)
	default:
		o.flow(text)
	}
}

// hosts adds what a line says of hosts: one, or several in brackets.
func (o *outliner) hosts(text []byte) {
	for part := range strings.SplitSeq(strings.Trim(scalarOf(text), "[]"), ",") {
		if host := strings.Trim(part, "[]\"' \t"); host != "" {
			o.host = append(o.host, host)
		}
	}
}

// label reads a line of the labels of a selector; false if it is none.
func (o *outliner) label(line []byte) bool {
	if o.labels == nil {
		return false
	}
	m := labelLine.FindSubmatch(line)
	if m == nil || len(m[1]) <= o.indent {
		o.labels = nil
		return false
	}
	o.labels[string(m[2])] = scalarOf(m[3])
	return true
}

// labelsIn are labels on one line, in braces.
func labelsIn(text []byte) map[string]any {
	labels := map[string]any{}
	for _, m := range flowLabel.FindAllSubmatch(text, -1) {
		labels[string(m[1])] = scalarOf(m[2])
	}
	return labels
}

// flowSelectors adds selectors in braces.
func (o *outliner) flowSelectors(text []byte) {
	for _, item := range flowSelector.FindAll(text, -1) {
		ref := map[string]any{}
		if m := flowLabels.FindSubmatch(item); m != nil {
			ref[matchLabels] = labelsIn(m[1])
		}
		for _, m := range flowField.FindAllSubmatch(flowLabels.ReplaceAll(item, nil), -1) {
			if name := string(m[1]); slices.Contains(refFields, name) {
				ref[name] = refValue(name, m[2])
			}
		}
		o.refs[o.list] = append(o.refs[o.list], ref)
	}
}

// flow adds references in braces, or names without a field.
func (o *outliner) flow(text []byte) {
	if o.list == selectors {
		o.flowSelectors(text)
		return
	}
	for part := range bytes.SplitSeq(text, []byte{'}'}) {
		ref := map[string]any{}
		for _, m := range flowField.FindAllSubmatch(part, -1) {
			if name := string(m[1]); slices.Contains(refFields, name) {
				ref[name] = refValue(name, m[2])
			}
		}
		if len(ref) > 0 {
			o.refs[o.list] = append(o.refs[o.list], ref)
		}
	}
}

// field adds a field of a reference in block style.
func (o *outliner) field(dash bool, name string, rest []byte) {
	if _, twice := o.ref[name]; o.ref == nil || dash || twice {
		o.ref = map[string]any{}
		o.refs[o.list] = append(o.refs[o.list], o.ref)
	}
	o.ref[name] = refValue(name, rest)
}

func refValue(name string, text []byte) any {
	value := scalarOf(text)
	if n, err := strconv.ParseInt(value, 10, 64); name == "port" && err == nil {
		return n
	}
	return value
}
