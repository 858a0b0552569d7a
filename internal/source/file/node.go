package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDepth bounds the nesting of a document; real ones stay below 20.
const maxDepth = 100

// syntaxError is text that is neither YAML nor JSON, or uses what Kubernetes
// doesn't take of them. line is relative to the document, 1-based, 0 when unknown.
type syntaxError struct {
	line int
	text string
	// yaml says that both are the YAML parser's, who names the line where the construct around
	// the mistake began. explained has better ones.
	yaml bool
}

func (e *syntaxError) Error() string { return e.text }

// parse reads one document. JSON may come as several values one after the other;
// those before an error are returned with it. JSON becomes the same tree as YAML,
// so that everything after this point is the same for both.
func parse(text []byte, isJSON bool) (nodes []*yaml.Node, err error) {
	defer func() {
		// The YAML parser is a port from C and does not check every index. Text on
		// which it panics counts as a syntax error.
		if r := recover(); r != nil {
			err = &syntaxError{text: fmt.Sprintf("the YAML parser gave up: %v", r)}
		}
	}()
	body := text
	if isMarker(body, "---") {
		body = bytes.Replace(body, []byte("---"), []byte("   "), 1)
	}
	trimmed := bytes.TrimSpace(body)
	if isJSON || len(trimmed) > 0 && trimmed[0] == '{' {
		nodes, err = parseJSON(body)
		if err == nil || isJSON {
			return nodes, err
		}
		if node, yamlErr := parseYAML(text); yamlErr == nil {
			return []*yaml.Node{node}, nil // a YAML mapping in flow style
		}
		return nodes, err
	}
	node, err := parseYAML(text)
	if err != nil {
		return nil, err
	}
	return []*yaml.Node{node}, nil
}

func parseYAML(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		return nil, yamlError(err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errSecond
		}
		return nil, yamlError(err)
	}
	if len(document.Content) != 1 {
		return nil, &syntaxError{text: "the document is empty"}
	}
	return document.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// yamlError takes the line out of the parser's message.
func yamlError(err error) *syntaxError {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	return &syntaxError{line: line, text: text, yaml: true}
}

// explained returns an error for people, with the line where the mistake is.
func explained(err error, text []byte) error {
	e := new(syntaxError)
	if !errors.As(err, &e) || !e.yaml {
		return err
	}
	lines := linesOf(text)
	at := e.line
	if found, ok := failing(lines); ok && e.text != errSecond.Error() {
		at = found + 1
	}
	var line []byte
	if at > 0 && at <= len(lines) {
		line = lines[at-1]
	}
	return &syntaxError{line: at, text: "not YAML: " + inWords(e.text, line)}
}

// jsonReader builds trees from JSON tokens, counting lines as it goes.
type jsonReader struct {
	decoder *json.Decoder
	text    []byte
	line    int
	counted int64
}

func parseJSON(text []byte) ([]*yaml.Node, error) {
	r := &jsonReader{decoder: json.NewDecoder(bytes.NewReader(text)), text: text, line: 1}
	r.decoder.UseNumber()
	var nodes []*yaml.Node
	for {
		token, err := r.decoder.Token()
		if errors.Is(err, io.EOF) {
			return nodes, nil
		}
		if err != nil {
			return nodes, r.failed(err)
		}
		node, err := r.node(token, 0)
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, node)
	}
}

// here returns the line of the token just read. No token spans lines.
func (r *jsonReader) here() int {
	at := min(r.decoder.InputOffset(), int64(len(r.text)))
	r.line += bytes.Count(r.text[r.counted:at], []byte{'\n'})
	r.counted = at
	return r.line
}

func (r *jsonReader) failed(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &syntaxError{line: 1 + bytes.Count(bytes.TrimRight(r.text, "\r\n"), []byte{'\n'}), text: "not JSON: the text ends inside a value"}
	}
	line := r.here()
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		at := max(0, min(syntax.Offset-1, int64(len(r.text))))
		line = max(line, 1+bytes.Count(r.text[:at], []byte{'\n'}))
	}
	return &syntaxError{line: line, text: "not JSON: " + strings.TrimPrefix(err.Error(), "json: ")}
}

func (r *jsonReader) node(token json.Token, depth int) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.here()}
	switch token := token.(type) {
	case json.Delim:
		if depth > maxDepth {
			return nil, tooDeep(n)
		}
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		if token == '[' {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		}
		for {
			next, err := r.decoder.Token()
			if err != nil {
				return nil, r.failed(err)
			}
			if end, ok := next.(json.Delim); ok && (end == '}' || end == ']') {
				return n, nil
			}
			child, err := r.node(next, depth+1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
	case string:
		n.Tag, n.Value, n.Style = "!!str", token, yaml.DoubleQuotedStyle
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(token)
	case json.Number:
		n.Tag, n.Value = "!!float", token.String()
		if !strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!int"
		}
	default:
		n.Tag = "!!null"
	}
	return n, nil
}

func tooDeep(n *yaml.Node) error {
	return &syntaxError{line: n.Line, text: fmt.Sprintf("nested deeper than %d levels", maxDepth)}
}
