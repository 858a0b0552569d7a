package ratelimit

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	ratelimitcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ratelimit/descriptor"
)

// A malformed request is one that says no limit that could be judged. Its text has nothing
// of the request's values, which are users' data.
type malformed string

func (m malformed) Error() string { return string(m) }

func malformedf(format string, a ...any) error { return malformed(fmt.Sprintf(format, a...)) }

// readHits reads a request's descriptors, in their order, into hits.
func readHits(req *ratelimitv3.RateLimitRequest, hits []Hit) ([]Hit, error) {
	if req.GetDomain() != descriptor.Domain {
		return nil, malformedf("the domain is not %q", descriptor.Domain)
	}
	switch n := len(req.GetDescriptors()); {
	case n == 0:
		return nil, malformedf("there is no descriptor")
	case n > descriptor.MaxDescriptors:
		return nil, malformedf("%d descriptors: at most %d are counted", n, descriptor.MaxDescriptors)
	}
	for i, d := range req.GetDescriptors() {
		h, err := readHit(d)
		if err != nil {
			return nil, malformedf("descriptor %d: %v", i, err)
		}
		h.N = addend(req, d)
		hits = append(hits, h)
	}
	return hits, nil
}

// addend returns how many hits a descriptor of a request stands for.
func addend(req *ratelimitv3.RateLimitRequest, d *ratelimitcommonv3.RateLimitDescriptor) uint32 {
	n := uint64(1)
	if own := d.GetHitsAddend(); own != nil {
		n = own.GetValue()
	} else if all := req.GetHitsAddend(); all != 0 {
		n = uint64(all)
	}
	return uint32(min(n, MaxHits))
}

// readHit reads all but the number of hits.
func readHit(d *ratelimitcommonv3.RateLimitDescriptor) (Hit, error) {
	entries := d.GetEntries()
	if n := len(entries); n > descriptor.MaxEntries {
		return Hit{}, malformedf("%d entries: at most %d are read", n, descriptor.MaxEntries)
	}
	if d.GetIsNegativeHits() {
		return Hit{}, malformedf("is_negative_hits: hits are never taken back")
	}
	if d.GetLimit() != nil {
		return Hit{}, malformedf("limit: the rate is said by the entry %q", descriptor.KeyRate)
	}
	if len(entries) < 2 || entries[0].GetKey() != descriptor.KeyLimit || entries[1].GetKey() != descriptor.KeyRate {
		return Hit{}, malformedf("the first entries are not %q and %q", descriptor.KeyLimit, descriptor.KeyRate)
	}
	name := entries[0].GetValue()
	if name == "" || len(name) > descriptor.MaxName {
		return Hit{}, malformedf("the name of the limit has %d bytes, not 1 to %d", len(name), descriptor.MaxName)
	}
	rate, err := descriptor.ParseRate(entries[1].GetValue())
	if err != nil {
		return Hit{}, err
	}
	h := Hit{Rate: rate}
	counters := entries[2:]
	for _, flag := range []struct {
		key  string
		mode Mode
	}{{descriptor.KeyShadow, Shadowed}, {descriptor.KeyCharge, Charged}} {
		if len(counters) == 0 || counters[0].GetKey() != flag.key {
			continue
		}
		if counters[0].GetValue() != descriptor.On {
			return Hit{}, malformedf("the value of %q is not %q", flag.key, descriptor.On)
		}
		h.Mode, counters = flag.mode, counters[1:]
	}
	h.Limit, h.Count, err = keysOf(name, counters)
	return h, err
}

// keysOf returns the keys of a limit and of the count of these counters. Lengths go first, so
// that no two lists have the same bytes.
func keysOf(name string, counters []*ratelimitcommonv3.RateLimitDescriptor_Entry) (limit, count Key, err error) {
	var buffer [512]byte
	b := appendText(buffer[:0], name)
	limit = keyOf(b)
	for _, e := range counters {
		switch k := e.GetKey(); {
		case k == descriptor.KeyLimit, k == descriptor.KeyRate, k == descriptor.KeyShadow, k == descriptor.KeyCharge:
			return limit, count, malformedf("the entry %q is not in its place", k)
		case k == "" || len(k) > descriptor.MaxKey:
			return limit, count, malformedf("the key of a counter has %d bytes, not 1 to %d", len(k), descriptor.MaxKey)
		case len(e.GetValue()) > descriptor.MaxValue:
			return limit, count, malformedf("the value of a counter has %d bytes, of %d at most", len(e.GetValue()), descriptor.MaxValue)
		}
		b = appendText(appendText(b, e.GetKey()), e.GetValue())
	}
	return limit, keyOf(b), nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func keyOf(b []byte) Key {
	sum := sha256.Sum256(b)
	return Key(sum[:len(Key{})])
}
