package file

import (
	"bytes"
	"regexp"
	"strings"
)

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
