package file

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// Bounds of the work of one scan on text that is not YAML, in bytes that are parsed: the line of
// a mistake, and what was meant, are found by trial. It is counted in the order of the files, so
// that what is found depends on the texts alone, and never on how fast they are read.
const (
	maxEffort  = 4 << 20
	fileShare  = 2   // of what the scan has left, a file may use one in so many
	pieceShare = 4   // of what its file has left, an object may use one in so many
	trialCost  = 256 // of a parse beside its bytes
	decodeCost = 4 << 10
	maxObjects = 5000 // that are held of such texts
)

// effort is what may still be spent on trials. A nil effort is spent.
type effort struct {
	of    *effort // what this is a share of
	left  int
	spent int
	tries int
	// objects are how many more may be held, where this is no share.
	objects int
}

func newEffort() *effort { return &effort{left: maxEffort, objects: maxObjects} }

// object reports whether one more object may be held.
func (e *effort) object() bool {
	for e.of != nil {
		e = e.of
	}
	e.objects--
	return e.objects >= 0
}

// share returns one part in so many of what is left.
func (e *effort) share(parts int) *effort { return &effort{of: e, left: e.left / parts} }

func (e *effort) spend(n int) {
	for ; e != nil; e = e.of {
		e.left -= n
		e.spent += n
		e.tries++
	}
}

func (e *effort) over() bool { return e.left <= 0 }

// parse returns the tree of some lines, which is nil for nothing but comments, and how many of
// them the parser has asked for: an error is the same whatever follows these.
func (e *effort) parse(lines [][]byte) (node *yaml.Node, read int, err error) {
	in := &lineReader{lines: lines}
	defer func() {
		if recover() != nil { // as in parse
			node, err = nil, errors.New("the YAML parser gave up")
		}
		read = in.next
		e.spend(trialCost + in.bytes)
	}()
	decoder := yaml.NewDecoder(in)
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	if err := decoder.Decode(new(yaml.Node)); err == nil {
		return nil, 0, errSecond
	} else if !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	if len(document.Content) != 1 {
		return nil, 0, nil
	}
	return document.Content[0], 0, nil
}

var errSecond = errors.New("text after the end of the document")

// failing returns the index of the line that breaks some lines which are not YAML; false if it
// isn't found. The parser names the line where the construct around it began, which may be far
// above. Text that ends before the mistake is usually valid, so the mistake is in the line after
// the longest valid beginning.
func (e *effort) failing(lines [][]byte) (at int, ok bool) {
	_, read, _ := e.parse(lines)
	valid := min(read, len(lines)) - 1
	for valid > 0 {
		if e.over() {
			return 0, false
		}
		_, read, err := e.parse(lines[:valid])
		if err == nil {
			break
		}
		valid = min(read, valid) - 1
	}
	valid = max(0, valid)
	for at := valid; at < len(lines); at++ {
		if !blank(lines[at]) {
			return at, true
		}
	}
	return valid, true
}

// linesOf are the lines of a text, without what ends them.
func linesOf(text []byte) [][]byte {
	lines := bytes.Split(text, []byte{'\n'})
	for i, line := range lines {
		lines[i] = bytes.TrimRight(line, "\r")
	}
	return lines
}

// lineReader gives a parser one line after the other, so that it is known how far it came.
type lineReader struct {
	lines [][]byte
	next  int
	rest  []byte
	bytes int
}

func (r *lineReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.next == len(r.lines) {
			return 0, io.EOF
		}
		r.rest = append(append(r.rest[:0:0], r.lines[r.next]...), '\n')
		r.next++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	r.bytes += n
	return n, nil
}
