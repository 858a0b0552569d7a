package file

import (
	"bytes"
	"iter"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// unparsed is a document of which not all can be understood.
type unparsed struct {
	doc  *document
	defs []definition // of what could be
	err  error
}

// salvage adds to a document what text that is not YAML seems to define, so that what it was to
// guard is held. Whatever was there before stays, as with all that can't be read.
func (r *reader) salvage(u *unparsed, text []byte, work *effort) *document {
	doc, defs := u.doc, u.defs
	err := explained(u.err, text, work.share(pieceShare))
	f := faultOf(err)
	var open *fault
	for _, piece := range piecesOf(text) {
		if !piece.guards() {
			continue
		}
		before := len(defs)
		for _, it := range r.itemsOf(piece, work.share(pieceShare)) {
			if !work.object() {
				break
			}
			it.glued, it.salvaged, it.separator = &f, true, documentSeparator
			// Only what the text says of an object counts here: text is told once to be no YAML.
			ignored := &document{}
			for _, def := range r.define(ignored, nil, it, nil, 0) {
				def.doc, def.order = doc, int32(len(defs))
				defs = append(defs, def)
			}
		}
		if len(defs) == before && open == nil {
			open = &fault{line: piece.above + piece.firstLine(), reason: f.reason, message: f.message, guess: r.guess(piece.text())}
		}
	}
	switch {
	case len(defs) == len(u.defs):
		f.guess = r.guess(text)
		doc.note(f, "")
	case open != nil:
		doc.note(*open, "")
	default:
		doc.extra().broken = true
	}
	doc.hold(defs)
	doc.finish()
	return doc
}

// itemsOf returns what a piece seems to define: with the least change that makes YAML of it, if
// that is found, or else by its outline.
func (r *reader) itemsOf(p piece, work *effort) (items []item) {
	if node, lost := r.repair(p, work); node != nil {
		c := &converter{drops: true}
		value, err := c.value(node, 0)
		if content, ok := value.(map[string]any); ok && err == nil {
			return []item{{node: node, content: content, duplicates: c.duplicates, lost: lost}}
		}
	}
	for _, node := range p.outlines() {
		value, err := (&converter{drops: true}).value(node, 0)
		if content, ok := value.(map[string]any); ok && err == nil {
			items = append(items, item{node: node, content: content, lost: true})
		}
	}
	return items
}

// A piece is a part of a text that seems to be one object.
type piece struct {
	above int // lines of the text before it
	lines [][]byte
}

// guards reports whether a piece may be a route or an AuthPolicy: nothing is held of other
// objects.
func (p piece) guards() bool {
	text := p.text()
	return guardLike.Match(text) && attached.Match(text)
}

func (p piece) text() []byte { return bytes.Join(p.lines, []byte{'\n'}) }

func (p piece) size() (n int) {
	for _, line := range p.lines {
		n += len(line) + 1
	}
	return n
}

var (
	guardLike = regexp.MustCompile(`(?i)route|parentref|authpolicy|targetref|targetselector`)
	// attached matches what says of an object what it is attached to, or its name.
	attached = regexp.MustCompile(`(?i)parent|target|ref|name`)
	// nearlyMarker matches what people write for ---.
	nearlyMarker = regexp.MustCompile(`^[ \t]*(-|–|—){2,}[ \t\r]*$`)
	noColon      = regexp.MustCompile(`^([ \t]*(?:- )?[A-Za-z]+) ([^:]+)$`)
	headField    = regexp.MustCompile(`^(apiVersion|kind|metadata):`)
)

// piecesOf cuts text where a line looks like a separator, or a field that names an object comes
// again.
func piecesOf(text []byte) (pieces []piece) {
	at := piece{}
	seen := map[string]bool{}
	cut := func(above int) {
		if !blank(at.text()) {
			pieces = append(pieces, at)
		}
		at = piece{above: above}
		clear(seen)
	}
	lines := linesOf(text)
	for i, line := range lines {
		if nearlyMarker.Match(line) {
			cut(i + 1)
			continue
		}
		if m := headField.FindSubmatch(line); m != nil {
			if seen[string(m[1])] && len(seen) > 1 && beginsObject(lines[i:]) {
				cut(i)
			}
			seen[string(m[1])] = true
		}
		at.lines = append(at.lines, line)
	}
	cut(len(lines))
	return pieces
}

// beginsObject reports whether lines name an object by more than one field.
func beginsObject(lines [][]byte) bool {
	seen := map[string]bool{}
	for _, line := range lines {
		m := headField.FindSubmatch(line)
		switch {
		case m == nil:
		case seen[string(m[1])]:
			return false
		case len(seen) == 1:
			return true
		default:
			seen[string(m[1])] = true
		}
	}
	return false
}

// Bounds of what is tried to make YAML of a piece.
const (
	maxRepairedSize = 32 << 10
	maxRemoved      = 10 // lines that may be left out
	repairReach     = 8  // how far above the line that can't be read the mistake may be
)

// repair returns the tree of a piece with the least change that makes YAML of it, and whether it
// has lost a line; nil if nothing does, or no more work may be spent.
func (r *reader) repair(p piece, work *effort) (node *yaml.Node, lost bool) {
	if node := p.parse(work); node != nil {
		return node, false
	}
	if work.over() || p.size() > maxRepairedSize {
		return nil, false
	}
	at, ok := work.failing(p.lines)
	if !ok {
		return nil, false
	}
	var best *yaml.Node
	for candidate, sure := range p.repairs(at) {
		if work.over() {
			break
		}
		node := candidate.parse(work)
		if node == nil || node.Kind != yaml.MappingNode {
			continue
		}
		if work.spend(decodeCost); r.valid(node) {
			return node, !sure
		}
		if best == nil {
			best, lost = node, !sure
		}
	}
	if best != nil {
		return best, lost
	}
	rest := piece{above: p.above, lines: slices.Clone(p.lines)}
	for range maxRemoved {
		at, ok := work.failing(rest.lines)
		if !ok {
			break
		}
		lost = lost || bytes.ContainsAny(rest.lines[at], ":/.*")
		rest.lines[at] = nil
		if node := rest.parse(work); node != nil {
			return node, lost
		}
	}
	return nil, false
}

// valid reports whether a tree is that of a valid object.
func (r *reader) valid(n *yaml.Node) bool {
	c := &converter{drops: true}
	value, err := c.value(n, 0)
	content, ok := value.(map[string]any)
	if err != nil || !ok || len(c.duplicates) > 0 {
		return false
	}
	id, err := r.validator.Identify(content)
	if err != nil {
		return false
	}
	_, errs := r.validator.Decode(id, content)
	return len(errs) == 0
}

// parse returns the tree of a piece, with the lines of the text it is from; nil if it is no YAML.
func (p piece) parse(work *effort) *yaml.Node {
	node, _, err := work.parse(p.lines)
	if err != nil || node == nil {
		return nil
	}
	lower(node, p.above)
	return node
}

// lower moves nodes down by some lines.
func lower(n *yaml.Node, lines int) {
	n.Line += lines
	for _, child := range n.Content {
		lower(child, lines)
	}
}

// repairs yields pieces that differ from one by a mistake that people make near a line, and
// whether that is all that can have been meant.
func (p piece) repairs(at int) iter.Seq2[piece, bool] {
	return func(yield func(piece, bool) bool) {
		with := func(from int, lines ...[]byte) piece {
			all := slices.Clone(p.lines)
			copy(all[from:], lines)
			return piece{above: p.above, lines: all}
		}
		untabbed := make([][]byte, len(p.lines))
		for i, line := range p.lines {
			rest := bytes.TrimLeft(line, " \t")
			untabbed[i] = append(bytes.ReplaceAll(line[:len(line)-len(rest)], []byte{'\t'}, []byte("  ")), rest...)
		}
		if !yield(with(0, untabbed...), true) {
			return
		}
		for i := at; i >= max(0, at-1); i-- {
			for _, line := range mendedLines(string(p.lines[i])) {
				if !yield(with(i, []byte(line)), bytes.Count(p.lines[i], []byte(": ")) < 2) {
					return
				}
			}
		}
		for i := at; i >= max(0, at-repairReach); i-- {
			for _, n := range [...]int{1, 2, 3, 4, 6, len(p.lines)} {
				for _, by := range [...]int{2, -2, 1, -1, 4, -4, 3, -3} {
					moved := shifted(p.lines[i:min(len(p.lines), i+n)], by)
					if moved != nil && !yield(with(i, moved...), true) {
						return
					}
				}
			}
		}
	}
}

// shifted returns lines with another indent; nil if one has too little.
func shifted(lines [][]byte, by int) [][]byte {
	out := make([][]byte, len(lines))
	for i, line := range lines {
		switch {
		case blank(line):
			out[i] = line
		case by > 0:
			out[i] = append(bytes.Repeat([]byte{' '}, by), line...)
		case len(line) >= -by && len(bytes.TrimSpace(line[:-by])) == 0:
			out[i] = line[-by:]
		default:
			return nil
		}
	}
	return out
}

// mendedLines are what a line may have been meant to be.
func mendedLines(line string) []string {
	out := []string{noColon.ReplaceAllString(line, "$1: $2"), line + ":"}
	if key, value, ok := strings.Cut(line, ":"); ok {
		value = strings.TrimSpace(value)
		out = append(out, key+": "+value, key+": '"+strings.Trim(value, `'"`)+"'", key+": "+strings.Trim(value, "[]{}"))
	}
	if key, value, ok := strings.Cut(line, "- "); ok {
		out = append(out, key+value, key+"  "+value, key+"- '"+strings.Trim(strings.TrimSpace(value), `'"`)+"'")
	}
	for _, end := range [...]string{`"`, `'`, "]", "}", "}]", "]}", "}}"} {
		out = append(out, line+end)
	}
	return append(out, strings.TrimRight(line, "]}\"' "))
}
