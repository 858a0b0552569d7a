package parameters

import (
	"fmt"
	"maps"
	"reflect"

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
	// Fleet is the one that its class's Gateways share; zero where it has its own.
	Fleet object.Name `json:"fleet,omitzero"`
	// Class is the GatewayClass that the Gateway was served under. A restarted controller
	// reads it from the Gateway's own fleet.
	Class string `json:"class,omitempty"`
}

// SameKept reports whether two are the same. Settings are one object as long as they are.
func SameKept(k, o Kept) bool {
	return k.UID == o.UID && k.Class == o.Class && k.Fleet == o.Fleet && k.Settings == o.Settings && reflect.DeepEqual(k.Allow, o.Allow)
}

// MaxKept is how much a ConfigMap takes.
const MaxKept = 1 << 20

// Encode writes what is kept; see object.Lines.
func Encode(all map[object.Name]*Kept, limit int) (text string, left []object.Name, err error) {
	if text, left, err = object.Lines(all, limit); err != nil {
		err = fmt.Errorf("settings of Gateway %w", err)
	}
	return text, left, err
}

// Decode reads what Encode wrote. Settings that Envoy would refuse, for
// another version has written them, are not among it.
func Decode(text string) (map[object.Name]*Kept, error) {
	all, err := object.ParseLines[*Kept](text)
	maps.DeleteFunc(all, func(_ object.Name, k *Kept) bool {
		return k == nil || k.Settings == nil || len(checkProxy(k.Settings)) > 0
	})
	return all, err
}
