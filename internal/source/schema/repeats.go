package schema

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"
)

// Bounds of what is remembered for one part of a schema.
const (
	maxRepeats   = 256 // values
	maxRepeated  = 512 // bytes of a value
	repeatsTrial = 512 // values that differ, before it is judged whether any repeat
)

// repeats remembers values of a part of a schema of which all rules hold, with what that has cost:
// matches, filters and references to Gateways are often the same in thousands of routes. A rule sees
// its value and nothing else, so what holds of a value holds of one that is equal to it.
type repeats struct {
	mu           sync.Mutex
	costs        map[string]int64
	hits, misses int
}

// cost returns what the rules have cost on a value that is equal, and known to hold.
func (r *repeats) cost(value []byte) (int64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cost, ok := r.costs[string(value)]
	if ok {
		r.hits++
	} else {
		r.misses++
	}
	return cost, ok
}

// worthwhile reports whether values seem to repeat.
func (r *repeats) worthwhile() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.misses < repeatsTrial || r.misses < 2*r.hits
}

func (r *repeats) add(value []byte, cost int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.costs == nil || len(r.costs) >= maxRepeats {
		r.costs = map[string]int64{}
	}
	r.costs[string(value)] = cost
}

// encoded appends a generic value to a text that no other value has; false if it is too long.
func encoded(text []byte, value any) (_ []byte, ok bool) {
	switch value := value.(type) {
	case nil:
		text = append(text, '0')
	case bool:
		text = append(text, 'f')
		if value {
			text[len(text)-1] = 't'
		}
	case int64:
		text = binary.LittleEndian.AppendUint64(append(text, 'i'), uint64(value))
	case float64:
		text = binary.LittleEndian.AppendUint64(append(text, 'd'), math.Float64bits(value))
	case string:
		if len(value) > maxRepeated {
			return nil, false
		}
		text = append(binary.AppendUvarint(append(text, 's'), uint64(len(value))), value...)
	case []any:
		text = binary.AppendUvarint(append(text, 'l'), uint64(len(value)))
		for _, item := range value {
			if text, ok = encoded(text, item); !ok {
				return nil, false
			}
		}
	case map[string]any:
		text = binary.AppendUvarint(append(text, 'm'), uint64(len(value)))
		var room [16]string
		names := room[:0]
		for name := range value {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			text = append(binary.AppendUvarint(text, uint64(len(name))), name...)
			if text, ok = encoded(text, value[name]); !ok {
				return nil, false
			}
		}
	default:
		return nil, false
	}
	return text, len(text) <= maxRepeated
}
