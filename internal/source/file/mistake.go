package file

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// failing returns the index of the line that breaks some lines which are not YAML; false if it
// isn't found. The parser names the line where the construct around it began, which may be far
// above. Text that ends before the mistake is usually valid, so the mistake is in the line after
// the longest valid beginning. It is found by trial, with work in proportion to the text.
func failing(lines [][]byte) (at int, ok bool) {
	budget := 64 << 10
	for _, line := range lines {
		budget += 2 * len(line)
	}
	read, n, _ := try(lines)
	valid := min(read, len(lines)) - 1
	for valid > 0 {
		if budget -= n + 256; budget < 0 {
			return 0, false
		}
		var err error
		if read, n, err = try(lines[:valid]); err == nil {
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

// try parses lines, and says how many of them the parser has asked for, and how many bytes: an
// error is the same whatever follows these.
func try(lines [][]byte) (read, size int, err error) {
	in := &lineReader{lines: lines}
	defer func() {
		if recover() != nil { // as in parse
			err = errors.New("the YAML parser gave up")
		}
		read, size = in.next, in.bytes
	}()
	decoder := yaml.NewDecoder(in)
	if err := decoder.Decode(new(yaml.Node)); err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, err
	}
	if err := decoder.Decode(new(yaml.Node)); err == nil {
		return 0, 0, errSecond
	} else if !errors.Is(err, io.EOF) {
		return 0, 0, err
	}
	return 0, 0, nil
}

var errSecond = errors.New("text after the end of the document")

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

// inWords says what is wrong with a line of YAML, in the words of somebody who writes YAML
// and doesn't parse it. It returns the parser's own where it knows no better.
func inWords(parser string, line []byte) string {
	indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
	if bytes.ContainsRune(indent, '\t') {
		return "the line begins with a tab, and YAML is indented with spaces only: replace it by spaces"
	}
	for _, m := range mistakes {
		if found := m.parser.FindStringSubmatch(parser); found != nil && (m.line == nil || m.line.Match(line)) {
			return strings.ReplaceAll(m.words, "$1", found[len(found)-1])
		}
	}
	return parser
}

// mistakes are what people do, by what the parser says of it and, if not nil, what the line
// is like.
var mistakes = []struct {
	parser, line *regexp.Regexp
	words        string
}{
	{
		regexp.MustCompile(`alphabetic or numeric character`), regexp.MustCompile(`\*`),
		`a value that begins with * is a reference to YAML: put it in quotes, such as "*.example.com"`,
	},
	{
		regexp.MustCompile(`cannot start any token`), regexp.MustCompile(`\t`),
		"there is a tab where YAML wants a space: replace it",
	},
	{
		regexp.MustCompile(`cannot start any token`), nil,
		"a value can't begin with @, ` or %: put it in quotes",
	},
	{
		regexp.MustCompile(`mapping values are not allowed`), nil,
		"there is a colon too many, or the line is indented too far: a value that has a colon and a space goes in quotes",
	},
	{
		regexp.MustCompile(`did not find expected key|expected <block end>`), nil,
		"the indentation doesn't fit the lines above: what belongs together begins in the same column",
	},
	{
		regexp.MustCompile(`did not find expected '-' indicator`), nil,
		"the line should be an item of the list above, which begins with - in the same column as the others",
	},
	{
		regexp.MustCompile(`did not find expected ',' or '(.)'`), nil,
		"a comma or $1 is missing, here or above",
	},
	{
		regexp.MustCompile(`did not find expected node content`), nil,
		"a [ or { above is not closed, or has a comma too many",
	},
	{
		regexp.MustCompile(`could not find expected ':'`), nil,
		"a colon with a space is missing, as in name: web",
	},
	{
		regexp.MustCompile(`unexpected end of stream`), nil,
		"a quote is opened and not closed",
	},
	{
		regexp.MustCompile(`unknown anchor '(.*)' referenced`), nil,
		"a value that begins with * is a reference, and there is no anchor &$1: put it in quotes if the * belongs to it",
	},
}
