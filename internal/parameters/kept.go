package parameters

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Kept is what a Gateway goes on with while its parameters can't be used or its class
// does not exist: what it had when they could be used last. Another Gateway of the same
// name has nothing of it. A restarted controller needs the settings that proxies get over
// xDS; what concerns pods needs no memory, since a fleet that is held stays as it is.
type Kept struct {
	UID      types.UID          `json:"uid"`
	Settings *v1alpha1.Settings `json:"settings"`
	// Allow is its class's: a limit must not end because the parameters of the class are
	// broken. Nil is the default of everything.
	Allow *v1alpha1.Allow `json:"allow,omitempty"`
	// Class is the GatewayClass that the Gateway was served under. A restarted controller
	// reads it from the Gateway's fleet.
	Class string `json:"-"`
}

// SameKept reports whether two are the same. Settings are one object as long as they are.
func SameKept(k, o Kept) bool {
	return k.UID == o.UID && k.Class == o.Class && k.Settings == o.Settings && reflect.DeepEqual(k.Allow, o.Allow)
}

// MaxKept is how much a ConfigMap takes.
const MaxKept = 1 << 20

// Encode writes what is kept as JSON, a line for each Gateway. What doesn't fit is
// left out, the largest first: nobody can crowd out others by writing much.
func Encode(all map[object.Name]*Kept, limit int) (text string, left []object.Name, err error) {
	type line struct {
		name object.Name
		text string
	}
	var lines []line
	for name, k := range all {
		text, err := json.Marshal(map[string]*Kept{name.String(): k})
		if err != nil {
			return "", nil, fmt.Errorf("settings of Gateway %s: %w", name, err)
		}
		lines = append(lines, line{name, string(text[1 : len(text)-1])})
	}
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(len(a.text), len(b.text)), a.name.Compare(b.name))
	})
	size, fit := len("{}"), 0
	for ; fit < len(lines); fit++ {
		if size += len(lines[fit].text) + len(",\n"); size > limit {
			break
		}
	}
	for _, l := range lines[fit:] {
		left = append(left, l.name)
	}
	if lines = lines[:fit]; fit == 0 {
		return "", left, nil
	}
	slices.SortFunc(lines, func(a, b line) int { return a.name.Compare(b.name) })
	texts := make([]string, fit)
	for i, l := range lines {
		texts[i] = l.text
	}
	return "{" + strings.Join(texts, ",\n") + "}", left, nil
}

// Decode reads what Encode wrote. Settings that Envoy would refuse, for
// another version has written them, are not among it.
func Decode(text string) (map[object.Name]*Kept, error) {
	if text == "" {
		return nil, nil
	}
	var all map[string]*Kept
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, err
	}
	out := make(map[object.Name]*Kept, len(all))
	for name, k := range all {
		gateway, ok := object.ParseName(name)
		if ok && k != nil && k.Settings != nil && len(checkProxy(k.Settings)) == 0 {
			out[gateway] = k
		}
	}
	return out, nil
}
