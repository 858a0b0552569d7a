package file

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// hashValue adds a generic value to a hash, the same for equal values whatever
// the order of keys in the text.
func hashValue(d *xxhash.Digest, value any) {
	var buf [9]byte
	put := func(kind byte, n uint64) {
		buf[0] = kind
		binary.LittleEndian.PutUint64(buf[1:], n)
		_, _ = d.Write(buf[:])
	}
	switch value := value.(type) {
	case nil:
		put('0', 0)
	case string:
		put('s', uint64(len(value)))
		_, _ = d.WriteString(value)
	case bool:
		if value {
			put('b', 1)
		} else {
			put('b', 0)
		}
	case int64:
		put('i', uint64(value))
	case float64:
		put('f', math.Float64bits(value))
	case []any:
		put('l', uint64(len(value)))
		for _, item := range value {
			hashValue(d, item)
		}
	case map[string]any:
		put('m', uint64(len(value)))
		var room [16]string // most mappings are small
		keys := slices.AppendSeq(room[:0], maps.Keys(value))
		slices.Sort(keys)
		for _, key := range keys {
			put('k', uint64(len(key)))
			_, _ = d.WriteString(key)
			hashValue(d, value[key])
		}
	}
}

func hashOf(values ...any) uint64 {
	d := xxhash.New()
	for _, value := range values {
		hashValue(d, value)
	}
	return d.Sum64()
}
