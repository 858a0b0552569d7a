package control

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// kept is what a restarted controller has to know of a Gateway whose parameters can't
// be used by then: the settings that proxies hear of over xDS. What concerns pods
// needs no memory, since a fleet that is held stays as it is.
type kept struct {
	UID      types.UID          `json:"uid"`
	Settings *v1alpha1.Settings `json:"settings"`
}

// declareKept declares what is to outlive the controller.
func (p *Pipeline) declareKept() {
	p.kept = flow.Map("kept-settings", p.graph.Gateways,
		func(c *flow.Ctx, name object.Name, gw *topology.Gateway, emit func(object.Name, *kept)) {
			settings := gw.Parameters
			switch {
			case gw.ParametersHeld || p.graph.HasParameters(gw) && !gw.Served():
				var ok bool
				if settings, ok = p.graph.SettledOf(c, gw.Object); !ok {
					return
				}
			case !p.graph.HasParameters(gw):
				return
			}
			emit(name, &kept{gw.Object.UID, &v1alpha1.Settings{
				Client: settings.Client, AccessLog: settings.AccessLog, Tracing: settings.Tracing,
			}})
		}, flow.Equal(func(a, b *kept) bool { return reflect.DeepEqual(a, b) }))
	flow.Watch(p.kept)
}

// seed takes in what an earlier controller has kept, before the first transaction
// with objects.
func (p *Pipeline) seed(all map[object.Name]*kept) {
	p.engine.Update(func(tx *flow.Tx) {
		for name, k := range all {
			p.inputs.Settled.Set(tx, name, topology.Settled{UID: k.UID, Settings: k.Settings})
		}
	})
}

// maxKept is how much a ConfigMap takes.
const maxKept = 1 << 20

// encodeKept writes what is kept as JSON, a line for each Gateway. What doesn't fit is
// left out, the largest first: nobody can crowd out others by writing much.
func encodeKept(all map[object.Name]*kept, limit int) (text string, left []object.Name, err error) {
	type line struct {
		name object.Name
		text string
	}
	var lines []line
	for name, k := range all {
		text, err := json.Marshal(map[string]*kept{name.String(): k})
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

// decodeKept reads what encodeKept wrote. Settings that Envoy would refuse, for
// another version has written them, are not among it.
func decodeKept(text string) (map[object.Name]*kept, error) {
	if text == "" {
		return nil, nil
	}
	var all map[string]*kept
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, err
	}
	out := make(map[object.Name]*kept, len(all))
	for name, k := range all {
		if k != nil && k.Settings != nil && len(checkSettings(k.Settings)) == 0 {
			out[parseName(name)] = k
		}
	}
	return out, nil
}
