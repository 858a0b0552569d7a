package envoy

import (
	"encoding/hex"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Hash is a content hash.
type Hash [16]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Sum hashes bytes.
func Sum(body []byte) Hash {
	d := newDigest()
	d.write(body)
	return d.sum()
}

// digest makes a Hash. Two seeds of a fast hash make 128 bits: collisions by
// chance are out of reach, and nobody gains by making one on purpose, since all
// that it could do is to keep their own object from being sent.
type digest struct{ low, high xxhash.Digest }

func newDigest() *digest {
	d := &digest{}
	d.low.ResetWithSeed(0)
	d.high.ResetWithSeed(0x9e3779b97f4a7c15)
	return d
}

func (d *digest) write(p []byte) {
	_, _ = d.low.Write(p)
	_, _ = d.high.Write(p)
}

func (d *digest) sum() Hash {
	var h Hash
	d.low.Sum(h[:0])
	d.high.Sum(h[8:8])
	return h
}

// Part is a marshalled piece of a resource that changes on its own: a virtual
// host of a route table. Its bytes are a complete field of the enclosing message.
type Part struct {
	// A bundle looks at these of each of its parts, of which hardly any are in the processor's caches
	// where there are many: one line of it is enough.
	Hash    Hash
	headers bool // it changes headers itself, around its routes
	nobody  bool // no request passes by it: it answers with errors

	Name string // the domain
	Body []byte
	// Guard is who may pass by it, as far as it says so itself.
	Guard Guard
}

// Bundle is a set of parts that are kept together, so that one changed part
// costs the work of its bundle and not of the whole resource.
type Bundle struct {
	hash  Hash
	parts []*Part
	// headers says that one of the parts changes headers around its routes.
	headers bool
}

// NewBundle returns a bundle of parts, which are sorted by name.
func NewBundle(parts []*Part) *Bundle {
	b := &Bundle{parts: parts}
	// Hashes are copied before they are hashed: the processor then fetches several parts at once.
	var few [128 * len(Hash{})]byte
	hashes := few[:0]
	for _, p := range parts {
		hashes = append(hashes, p.Hash[:]...)
		b.headers = b.headers || p.headers
	}
	b.hash = Sum(hashes)
	return b
}

// Hash returns what differs where the parts do.
func (b *Bundle) Hash() Hash { return b.hash }

// Parts returns the parts, sorted by name. They are not to be changed.
func (b *Bundle) Parts() []*Part { return b.parts }

// Equal reports whether two bundles hold the same.
func (b *Bundle) Equal(o *Bundle) bool {
	return b == o || b != nil && o != nil && b.hash == o.hash && b.headers == o.headers
}

// Resource is one xDS resource, ready to be sent. It is immutable.
type Resource struct {
	Type Type
	// Spare says that only connections that drain use it: a proxy may never ask for it.
	Spare   bool
	Name    string
	Version string // content hash; never empty

	head    []byte    // the whole body, or the fields before the parts
	waits   *[]string // see WaitsFor
	carries *[]uint64 // see Carrying
	*composite
}

// composite is what only resources with parts need: most have none, and there
// are many of them.
type composite struct {
	bundles []*Bundle
	guard   Guard // of the head
}

// NewResource returns a resource with a body of its own.
func NewResource(t Type, name string, body []byte) *Resource {
	return &Resource{Type: t, Name: name, Version: Sum(body).String(), head: body}
}

// Guarded returns a resource that says, before its parts if it has any, who may pass.
func (r *Resource) Guarded(by Guard) *Resource {
	if slices.Equal(r.Guard(), by) {
		return r
	}
	out := *r
	out.composite = &composite{guard: by}
	if r.composite != nil {
		out.bundles = r.bundles
	}
	return &out
}

// Guard returns who may pass by what stands before the parts.
func (r *Resource) Guard() Guard {
	if r == nil || r.composite == nil {
		return nil
	}
	return r.guard
}

// NewComposite returns a resource whose body is head followed by its parts.
func NewComposite(t Type, name string, head []byte, parts []*Part) *Resource {
	return newBundled(t, name, head, []*Bundle{NewBundle(parts)})
}

// newBundled returns a resource whose body is head followed by the parts of its
// bundles. It costs nothing that grows with the parts until Body is called.
func newBundled(t Type, name string, head []byte, bundles []*Bundle) *Resource {
	d := newDigest()
	d.write(head)
	for _, b := range bundles {
		d.write(b.hash[:])
	}
	return &Resource{Type: t, Name: name, Version: d.sum().String(), head: head, composite: &composite{bundles: bundles}}
}

// Parts returns the pieces that change on their own; none for most types.
func (r *Resource) Parts() []*Part { return slices.Collect(r.parts) }

// WithParts returns the resource with other parts and the version that follows.
func (r *Resource) WithParts(parts []*Part) *Resource {
	return NewComposite(r.Type, r.Name, r.head, parts).Guarded(r.Guard())
}

// Become returns the resource with the content of another one, and all else that is said of it as it was.
func (r *Resource) Become(other *Resource) *Resource {
	out := *r
	out.head, out.Version = other.head, other.Version
	return &out
}

// Bundles returns the parts as they are kept together; none for most types.
func (r *Resource) Bundles() []*Bundle {
	if r.composite == nil {
		return nil
	}
	return r.bundles
}

// WithBundles returns the resource with other parts, and all else that is said of it as it was.
func (r *Resource) WithBundles(bundles []*Bundle) *Resource {
	out, now := *r, newBundled(r.Type, r.Name, r.head, bundles)
	out.Version, out.composite = now.Version, &composite{bundles: bundles, guard: r.Guard()}
	return &out
}

// WaitsFor names what a resource is of no use without: the secrets of a cluster, which counts
// as missing until they have come, and the route table that a scope leads to.
func (r *Resource) WaitsFor() []string {
	if r.waits == nil {
		return nil
	}
	return *r.waits
}

// Awaiting returns a resource that a proxy can't use without some others.
func (r *Resource) Awaiting(names ...string) *Resource {
	out := *r
	out.waits = &names
	return &out
}

// Sparing returns a resource that is spare, or not.
func (r *Resource) Sparing(spare bool) *Resource {
	if r.Spare == spare {
		return r
	}
	out := *r
	out.Spare = spare
	return &out
}

// Body returns the marshalled message, the value of its google.protobuf.Any. Where there are parts it is put
// together by each call, which costs less than to have all of them in memory twice.
func (r *Resource) Body() []byte {
	if r.composite == nil {
		return r.head
	}
	body := append(make([]byte, 0, r.Size()), r.head...)
	for p := range r.parts {
		body = append(body, p.Body...)
	}
	return body
}

// HasParts reports whether Body puts the bytes together.
func (r *Resource) HasParts() bool { return r.composite != nil && len(r.bundles) > 0 }

// Size is how many bytes the body has.
func (r *Resource) Size() int {
	n := len(r.head)
	for p := range r.parts {
		n += len(p.Body)
	}
	return n
}

// parts yields the pieces that change on their own.
func (r *Resource) parts(yield func(*Part) bool) {
	if r.composite == nil {
		return
	}
	for _, b := range r.bundles {
		for _, p := range b.parts {
			if !yield(p) {
				return
			}
		}
	}
}

// Equal reports whether two resources are the same.
func (r *Resource) Equal(o *Resource) bool {
	return r.EqualBytes(o) && (r == o || r.Spare == o.Spare)
}

// EqualBytes reports whether two resources are the same to a proxy, spare or not.
func (r *Resource) EqualBytes(o *Resource) bool {
	return r == o || r != nil && o != nil && r.Version == o.Version && r.Name == o.Name && r.Type == o.Type
}
