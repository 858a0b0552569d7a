package envoy

import (
	"encoding/hex"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// Type is a kind of xDS resource.
type Type uint8

// The types that Gatehouse serves, in the order in which additions must reach a
// proxy; removals go the other way round.
const (
	Clusters Type = iota
	Endpoints
	Secrets
	Listeners
	Routes
	NumTypes
)

var urls = [NumTypes]string{
	Clusters:  "type.googleapis.com/envoy.config.cluster.v3.Cluster",
	Endpoints: "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
	Secrets:   "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
	Listeners: "type.googleapis.com/envoy.config.listener.v3.Listener",
	Routes:    "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
}

var names = [NumTypes]string{"cluster", "endpoints", "secret", "listener", "routes"}

// URL returns the type's xDS name.
func (t Type) URL() string { return urls[t] }

// String returns a short name for people.
func (t Type) String() string { return names[t] }

// TypeOf returns the type with an xDS name.
func TypeOf(url string) (Type, bool) {
	for t, u := range urls {
		if u == url {
			return Type(t), true
		}
	}
	return 0, false
}

// Hash is a content hash.
type Hash [16]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Sum hashes bytes. Two seeds of a fast hash make 128 bits: collisions by chance
// are out of reach, and nobody gains by making one on purpose, since all that it
// could do is to keep their own object from being sent.
func Sum(parts ...[]byte) Hash {
	var h Hash
	a, b := xxhash.NewWithSeed(0), xxhash.NewWithSeed(0x9e3779b97f4a7c15)
	for _, p := range parts {
		_, _ = a.Write(p)
		_, _ = b.Write(p)
	}
	a.Sum(h[:0])
	b.Sum(h[8:8])
	return h
}

// Part is a marshalled piece of a resource that changes on its own: a virtual
// host of a route table. Its bytes are a complete field of the enclosing message.
type Part struct {
	Name string // the domain
	Hash Hash
	Body []byte
}

// Resource is one xDS resource, ready to be sent. It is immutable.
type Resource struct {
	Type    Type
	Name    string
	Version string // content hash; never empty

	head  []byte  // the whole body, or the fields before the parts
	parts []*Part // sorted by name
	once  sync.Once
	body  []byte
}

// NewResource returns a resource with a body of its own.
func NewResource(t Type, name string, body []byte) *Resource {
	return &Resource{Type: t, Name: name, Version: Sum(body).String(), head: body}
}

// NewComposite returns a resource whose body is head followed by its parts. It
// costs nothing that grows with the parts' bytes until Body is called.
func NewComposite(t Type, name string, head []byte, parts []*Part) *Resource {
	a, b := xxhash.NewWithSeed(1), xxhash.NewWithSeed(0x9e3779b97f4a7c15)
	_, _ = a.Write(head)
	_, _ = b.Write(head)
	for _, p := range parts {
		_, _ = a.Write(p.Hash[:])
		_, _ = b.Write(p.Hash[:])
	}
	var h Hash
	a.Sum(h[:0])
	b.Sum(h[8:8])
	return &Resource{Type: t, Name: name, Version: h.String(), head: head, parts: parts}
}

// Parts returns the pieces that change on their own; nil for most types.
func (r *Resource) Parts() []*Part { return r.parts }

// WithParts returns the resource with other parts and the version that follows.
func (r *Resource) WithParts(parts []*Part) *Resource {
	return NewComposite(r.Type, r.Name, r.head, parts)
}

// Body returns the marshalled message, the value of its google.protobuf.Any. It
// is put together once, whatever the number of proxies that get it.
func (r *Resource) Body() []byte {
	if r.parts == nil {
		return r.head
	}
	r.once.Do(func() {
		n := len(r.head)
		for _, p := range r.parts {
			n += len(p.Body)
		}
		r.body = make([]byte, 0, n)
		r.body = append(r.body, r.head...)
		for _, p := range r.parts {
			r.body = append(r.body, p.Body...)
		}
	})
	return r.body
}

// Equal reports whether two resources are the same to a proxy.
func (r *Resource) Equal(o *Resource) bool {
	return r == o || r != nil && o != nil && r.Version == o.Version && r.Name == o.Name && r.Type == o.Type
}
