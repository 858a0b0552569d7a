package envoy

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// position begins the errors of protojson.
var position = regexp.MustCompile(`^proto: (syntax error )?(\(line [0-9:]+\): )?`)

// CheckBootstrap finds what Envoy would refuse of a bootstrap in JSON. What
// extensions say whose types are not known here is left to Envoy.
func CheckBootstrap(text []byte) error {
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return err
	}
	blind(content)
	known, err := json.Marshal(content)
	if err != nil {
		return err
	}
	var m bootstrapv3.Bootstrap
	if err := protojson.Unmarshal(known, &m); err != nil {
		// The library varies a space in its texts on purpose, and the line and column
		// are those of a text that nobody has written.
		return errors.New(position.ReplaceAllString(strings.ReplaceAll(err.Error(), "\u00a0", " "), ""))
	}
	return m.ValidateAll()
}

// blind empties what has a type that is not known.
func blind(node any) {
	switch node := node.(type) {
	case map[string]any:
		if url, ok := node["@type"].(string); ok {
			if _, err := protoregistry.GlobalTypes.FindMessageByURL(url); err != nil {
				clear(node)
				return
			}
		}
		for _, child := range node {
			blind(child)
		}
	case []any:
		for _, child := range node {
			blind(child)
		}
	}
}
