package policy

import (
	"github.com/cespare/xxhash/v2"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Presence tells of objects that policies of some kinds target none of them. It answers
// for many objects at a time: hardly any object has a policy, and every look is
// remembered.
type Presence struct {
	buckets flow.Table[bucket, struct{}]
}

// bucket is some of the objects of a kind in a namespace. There are many, so that the
// first policy in one and the end of its last wake few.
type bucket struct {
	kind      object.Kind
	namespace string
	number    uint8
}

func bucketOf(k object.Key) bucket {
	return bucket{k.Kind, k.Namespace, uint8(xxhash.Sum64String(k.Name.Name))} //nolint:gosec // a part of the hash
}

// Targeted is what Presence looks at: the attachments of any kind.
type Targeted interface {
	Targets() flow.Table[object.Key, struct{}]
}

// NewPresence declares the presence of policies of at least one kind.
func NewPresence(name string, kinds ...Targeted) Presence {
	tables := make([]flow.Table[object.Key, struct{}], len(kinds))
	for i, k := range kinds {
		tables[i] = k.Targets()
	}
	return Presence{flow.Keys(name, func(k object.Key, _ struct{}, yield func(bucket)) { yield(bucketOf(k)) }, tables...)}
}

// Possible reports whether an object may have policies of one of the kinds. It has none
// where it says no.
func (p Presence) Possible(c *flow.Ctx, on object.Key) bool {
	_, some := flow.Get(c, p.buckets, bucketOf(on))
	return some
}
