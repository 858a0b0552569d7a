package ir

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Variable is what a header can say of a request.
type Variable string

// What there is. The last two are of a name.
const (
	VariablePath    Variable = "request.path" // as routes match it, without the query
	VariableMethod  Variable = "request.method"
	VariableHost    Variable = "request.host"
	VariableScheme  Variable = "request.scheme" // http or https
	VariableID      Variable = "request.id"
	VariableAddress Variable = "client.address"
	VariableHeader  Variable = "request.headers"
	VariableQuery   Variable = "request.query"
)

// Variables are all of them.
var Variables = []Variable{VariablePath, VariableMethod, VariableHost, VariableScheme, VariableID, VariableAddress, VariableHeader, VariableQuery}

// named reports whether a variable has a name behind it.
func (v Variable) named() bool { return v == VariableHeader || v == VariableQuery }

// Piece is a part of a template: text, or a variable.
type Piece struct {
	Text     string
	Variable Variable
	Name     string // of a header, in lower case, or of a parameter of the query
}

// ParseTemplate reads a text with variables such as ${request.path}. $${ stands for ${.
func ParseTemplate(text string) (out []Piece, err error) {
	literal := func(s string) {
		if n := len(out); n > 0 && out[n-1].Variable == "" {
			out[n-1].Text += s
		} else if s != "" {
			out = append(out, Piece{Text: s})
		}
	}
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			literal(text)
			return out, nil
		}
		if strings.HasSuffix(before, "$") {
			literal(before + "{")
			text = rest
			continue
		}
		literal(before)
		inside, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, fmt.Errorf("${%s has no } behind it; write $${ for the text ${", rest)
		}
		piece, err := variable(inside)
		if err != nil {
			return nil, err
		}
		out, text = append(out, piece), after
	}
}

func variable(text string) (Piece, error) {
	v, name := Variable(text), ""
	for _, of := range []Variable{VariableHeader, VariableQuery} {
		if after, ok := strings.CutPrefix(text, string(of)+"."); ok {
			v, name = of, after
		}
	}
	switch {
	case !slices.Contains(Variables, v):
		return Piece{}, fmt.Errorf("there is no ${%s}; there are %s", text, known())
	case v.named() && (name == "" || strings.ContainsFunc(name, func(c rune) bool { return !plain(c) })):
		return Piece{}, fmt.Errorf("${%s} has no name of letters, digits and ._- behind %s", text, v)
	case v == VariableHeader:
		name = strings.ToLower(name)
	}
	return Piece{Variable: v, Name: name}, nil
}

func plain(c rune) bool {
	return c < utf8.RuneSelf && (IsAlphanumeric(byte(c)) || c == '-' || c == '_' || c == '.')
}

func known() string {
	var b strings.Builder
	for i, v := range Variables {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("${" + string(v))
		if v.named() {
			b.WriteString(".NAME")
		}
		b.WriteString("}")
	}
	return b.String()
}
