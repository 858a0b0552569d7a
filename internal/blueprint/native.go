package blueprint

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxDepth bounds templates, values and results.
const maxDepth = 32

// native is a value of CEL as JSON has it.
func native(v ref.Val, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the value is deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return int64(v), nil //nolint:gosec // JSON has one kind of whole number
	case types.Double:
		return float64(v), nil
	case types.Bytes:
		return nil, errors.New("the value is bytes; base64.encode makes a text of them")
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			item, err := native(it.Next(), depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, item)
		}
		return out, nil
	case traits.Mapper:
		out := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			name, ok := key.(types.String)
			if !ok {
				return nil, fmt.Errorf("a key of a map is of type %s; keys are texts", key.Type())
			}
			value, err := native(v.Get(key), depth+1)
			if err != nil {
				return nil, err
			}
			out[string(name)] = value
		}
		return out, nil
	default:
		return nil, fmt.Errorf("the value is of type %s; string() or another conversion makes a text of it", v.Type())
	}
}

// asText is a value in the middle of a text.
func asText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case bool:
		return strconv.FormatBool(v), nil
	case nil:
		return "", errors.New("null stands in the middle of a text")
	default:
		return "", fmt.Errorf("%s stands in the middle of a text; only texts, numbers and booleans can", kindOf(v))
	}
}

// kindOf says what a value is, for people.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return "a text"
	case bool:
		return "a boolean"
	default:
		return "a number"
	}
}
