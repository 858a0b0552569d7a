package file

import (
	"bytes"
	"errors"
	"regexp"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// guess returns the object that a document seems to define that is not YAML; zero if it can't
// be told. It is for messages, so that what refers to the object can say what it waits for.
func (r *reader) guess(text []byte) object.Key {
	content := map[string]any{}
	meta := map[string]any{}
	for name, value := range headOf(text) {
		switch name {
		case "apiVersion", "kind":
			content[name] = value
		default:
			meta[name] = value
		}
	}
	content["metadata"] = meta
	return r.identityOf(content)
}

// identityOf returns the object that content defines, with a misspelt kind for what may be
// meant; zero if it can't be told.
func (r *reader) identityOf(content map[string]any) object.Key {
	if r.validator == nil {
		return object.Key{}
	}
	id, err := r.validator.Identify(content)
	if errors.Is(err, schema.ErrForeign) {
		return object.Key{}
	}
	if err != nil {
		meant, ok := r.validator.Meant(content, 0)
		if !ok || schema.Unnamed(meant.Key.Name.Name) {
			return object.Key{}
		}
		id = meant.Identity
	}
	return id.Key
}

var (
	topLevel = regexp.MustCompile(`^(apiVersion|kind|metadata):[ \t]*(.*)$`)
	inMeta   = regexp.MustCompile(`^([ \t]+)(name|namespace):[ \t]*(.*)$`)
	inFlow   = regexp.MustCompile(`[{,][ \t]*(name|namespace):[ \t]*([^,{}]*)`)
)

// headOf reads line by line what names an object: apiVersion, kind, and name and namespace of
// its metadata.
func headOf(text []byte) map[string]string {
	head := map[string]string{}
	within := false // metadata
	indent := ""    // of its fields
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if m := topLevel.FindSubmatch(line); m != nil {
			within, indent = string(m[1]) == "metadata", ""
			if !within {
				head[string(m[1])] = scalarOf(m[2])
				continue
			}
			for _, f := range inFlow.FindAllSubmatch(m[2], -1) {
				if name := string(f[1]); head[name] == "" {
					head[name] = scalarOf(f[2])
				}
			}
			continue
		}
		if len(line) > 0 && line[0] != ' ' && line[0] != '\t' && line[0] != '#' {
			within = false
		}
		if !within || blank(line) {
			continue
		}
		if indent == "" {
			indent = string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
		}
		if m := inMeta.FindSubmatch(line); m != nil && string(m[1]) == indent && head[string(m[2])] == "" {
			head[string(m[2])] = scalarOf(m[3])
		}
	}
	return head
}

// scalarOf is a value without its quotes and a comment behind it.
func scalarOf(text []byte) string {
	if i := bytes.Index(text, []byte(" #")); i >= 0 {
		text = text[:i]
	}
	return string(bytes.Trim(text, " \t\"'"))
}
