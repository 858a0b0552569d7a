package blueprint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"sigs.k8s.io/yaml"
)

// functions are those that only blueprints have:
//
//   - text(template, map): what a Go template with sprig's pure functions makes of a map
//   - hashName(text, max): the text, ended by its hash where it has more than max characters
//   - hash(value): eight characters that tell one value from another
//   - toYaml(value), toJson(value): the value as a text
//   - merge(list): one map of a list of maps, of which later ones have more say; nulls say nothing
//   - url.PathEscape and the like are Kubernetes' own libraries
func functions() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Function("text", cel.Overload("blueprint_text", []*cel.Type{cel.StringType, cel.DynType}, cel.StringType,
			cel.BinaryBinding(func(template, data ref.Val) ref.Val {
				in, err := native(data, 0)
				if err != nil {
					return types.WrapErr(err)
				}
				out, err := text(string(template.(types.String)), in)
				if err != nil {
					return types.WrapErr(err)
				}
				return types.String(out)
			}))),
		cel.Function("hashName", cel.Overload("blueprint_hash_name", []*cel.Type{cel.StringType, cel.IntType}, cel.StringType,
			cel.BinaryBinding(func(text, limit ref.Val) ref.Val {
				if limit.(types.Int) < hashLength+1 {
					return types.NewErr("hashName needs room for a hash: at least %d characters", hashLength+1)
				}
				return types.String(hashName(string(text.(types.String)), int(limit.(types.Int))))
			}))),
		cel.Function("hash", cel.Overload("blueprint_hash", []*cel.Type{cel.DynType}, cel.StringType,
			cel.UnaryBinding(fromNative(func(v any) (string, error) { return contentHash(v) })))),
		cel.Function("toJson", cel.Overload("blueprint_to_json", []*cel.Type{cel.DynType}, cel.StringType,
			cel.UnaryBinding(fromNative(func(v any) (string, error) {
				out, err := json.Marshal(v)
				return string(out), err
			})))),
		cel.Function("merge", cel.Overload("blueprint_merge", []*cel.Type{cel.ListType(cel.DynType)}, cel.MapType(cel.StringType, cel.DynType),
			cel.UnaryBinding(merge))),
		cel.Function("toYaml", cel.Overload("blueprint_to_yaml", []*cel.Type{cel.DynType}, cel.StringType,
			cel.UnaryBinding(fromNative(toYAML)))),
	}
}

// fromNative is a function of a value as CEL calls it.
func fromNative(f func(any) (string, error)) func(ref.Val) ref.Val {
	return func(v ref.Val) ref.Val {
		in, err := native(v, 0)
		if err != nil {
			return types.WrapErr(err)
		}
		out, err := f(in)
		if err != nil {
			return types.WrapErr(err)
		}
		return types.String(out)
	}
}

// merge is one map of a list of maps.
func merge(list ref.Val) ref.Val {
	in, err := native(list, 0)
	if err != nil {
		return types.WrapErr(err)
	}
	out := map[string]any{}
	for _, each := range in.([]any) {
		m, ok := each.(map[string]any)
		if !ok && each != nil {
			return types.NewErr("merge takes a list of maps")
		}
		maps.Copy(out, m)
	}
	return types.DefaultTypeAdapter.NativeToValue(out)
}

func toYAML(v any) (string, error) {
	out, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(out), "\n"), err
}

// hashLength is how many characters tell names and contents apart: 32 bits.
const hashLength = 8

// hashName keeps a text that has at most so many characters, and ends a longer one by its hash.
func hashName(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return strings.TrimRight(text[:limit-hashLength-1], "-._") + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// contentHash is the same for equal values only.
func contentHash(v any) (string, error) {
	text, err := json.Marshal(v) // maps are sorted
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:hashLength], err
}
